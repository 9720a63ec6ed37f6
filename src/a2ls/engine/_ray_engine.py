"""Runs jobs on a Ray cluster: the search's end of it."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import socket
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from a2ls._errors import BadInput, Failure
from a2ls._extras import extra
from a2ls.engine._engine import Event, Failed, Finished, Job, JobKey
from a2ls.engine._parcel import pack
from a2ls.engine._ray_ledger import LOSSES
from a2ls.engine._shared_checkpoint import SharedFolder, shared_name

_NAMESPACE = "a2ls"
_SECONDS_TO_ANSWER = 300.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Without this Ray takes the address of the network card for every loopback address.
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class RayEngine:
    """An `Engine` whose workers are on the nodes of a Ray cluster that runs already.

    Jobs go to a dispatcher, an actor on the head node of the cluster. It starts as many workers as the nodes have room
    for, also when nodes come and go, and begins a job anew whose worker was lost. It outlives this process: one that is
    killed and goes on under the same name finds what its trainings have done meanwhile. `close` ends all of it.

    Args:
        name: Of the search, or whatever the jobs belong to; no two at once on a cluster may have the same.
        address: Of the cluster, `host:port`; `auto` for the one that this machine is part of.
        workers: How many jobs run at once; None for as many as there is room for.
        cpus: Processors that a training takes.
        gpus: Graphics cards that it takes; several trainings share one if it is a fraction.
        checkpoints: Folder that all nodes reach, as a path or a URL of fsspec, for the checkpoints of jobs: a training
            that was interrupted goes on from its own. Empty to save nothing; it begins anew then.
        checkpoint_seconds: How much time the loss of a worker may cost, if there is such a folder.
        log: File to which the output of trainings that failed is appended.
        stall_seconds: A training of which nothing was heard for so long is ended: it has failed, as if it had raised.

    Raises:
        BadInput: If Ray is not installed, there is no such cluster, or it has no room for a training.
    """

    def __init__(
        self,
        name: str,
        *,
        address: str = "auto",
        workers: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        checkpoints: str = "",
        checkpoint_seconds: float = 60.0,
        log: Path | None = None,
        stall_seconds: float = float("inf"),
    ) -> None:
        _require_resources(workers, cpus, gpus)
        if checkpoints and "://" not in checkpoints:
            checkpoints = str(Path(checkpoints).absolute())
        self._shared = SharedFolder(checkpoints) if checkpoints else None
        if self._shared is not None:
            self._shared.require_writable()
        require_cluster(address)
        self._ray = importlib.import_module("ray")
        self._connected = _connect(self._ray, address)
        # Imported late, since these import Ray.
        self._messages = importlib.import_module("a2ls.engine._ray_dispatcher")
        settings = importlib.import_module("a2ls.engine._ray_worker").Settings
        self._settings = settings(
            version=version("a2ls"),
            path=tuple(str(Path(entry or ".").absolute()) for entry in sys.path),
            cpus=cpus,
            gpus=gpus,
            workers=workers,
            checkpoints=checkpoints,
            checkpoint_seconds=checkpoint_seconds,
            stall_seconds=stall_seconds,
        )
        self._name = f"dispatcher-{name}"
        self._workers = workers or self._room()
        self._log = log
        self._dispatcher: Any = None
        self._search = ""
        self._closed = False
        self._jobs: dict[JobKey, Job] = {}
        self._trainings: dict[JobKey, bytes] = {}
        self._last: dict[JobKey, Any] = {}
        """What was last heard of each job from the present dispatcher."""
        self._losses: Counter[JobKey] = Counter()
        """How many dispatchers were lost while they had the job."""
        self._commands: list[Any] = []

    def _room(self) -> int:
        nodes = self._ray.nodes()
        room: int = self._messages.slots(nodes, self._settings.cpus, self._settings.gpus)
        if not room:
            resources = [node["Resources"] for node in nodes if node["Alive"]]
            has = sorted(f"{each.get('CPU', 0):g} CPUs and {each.get('GPU', 0):g} GPUs" for each in resources)
            self._disconnect()
            raise BadInput(
                f"cpus is {self._settings.cpus:g} and gpus is {self._settings.gpus:g}, but no node of the cluster has "
                f"room for such a training: they have {', '.join(has)}. Give --workers for a cluster that will grow"
            )
        return room

    @property
    def workers(self) -> int:
        """How many jobs it runs at once; changes with the cluster."""
        return self._workers

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return max(0, self._workers - len(self._jobs))

    def submit(self, job: Job) -> None:
        """Run a job on a free worker. The first event about it is `Started`, the last `Finished` or `Failed`."""
        if self._closed:
            raise RuntimeError("the engine is closed")
        if not self.free:
            raise RuntimeError(f"all {self.workers} workers are busy")
        self._trainings[job.key] = pack(job.training, wants_policy=job.wants_policy)
        self._jobs[job.key] = job
        self._last.pop(job.key, None)
        self._commands.append(self._messages.Submit(job.key, self._trainings[job.key]))

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits at most `timeout` seconds for the first event.

        A job whose worker was lost is begun anew: it has another `Started`, and its curve comes from the start.
        """
        if self._closed:
            return []
        errors = self._ray.exceptions
        if self._dispatcher is None:
            self._find_dispatcher()
        try:
            call = self._dispatcher.exchange.remote(self._search, self._commands, timeout)
            news = self._ray.get(call, timeout=timeout + _SECONDS_TO_ANSWER)
        except errors.GetTimeoutError as error:
            raise Failure(f"the cluster has not answered for {_SECONDS_TO_ANSWER:g} s: go on when it does") from error
        except errors.RayActorError as error:
            # It was killed, and is begun anew without any memory; or it lives, and knows a part of what it was told.
            self._dispatcher = None
            time.sleep(min(timeout, 0.5))
            return self._given_up(error)
        if news is None:
            self._dispatcher = None
            return []
        self._commands.clear()
        self._workers = self._workers if news.workers is None else news.workers
        if news.trouble:
            raise BadInput(news.trouble)
        return [self._event(each) for each in news.deliveries if each.key in self._jobs]

    def _given_up(self, error: Exception) -> list[Event]:
        """The failures of jobs under which very many dispatchers were lost, of which one may be what kills them."""
        begun = [key for key in self._last if key in self._jobs]
        self._losses.update(begun)
        words = str(error).strip().partition("\n")[0]
        reason = f"{LOSSES} dispatchers were lost while it was trained; the last one: {words}"
        lost = [key for key in begun if self._losses[key] >= LOSSES]
        return [Failed(self._jobs.pop(key), self._last[key].worker, reason, "worker") for key in lost]

    def _event(self, delivery: Any) -> Event:
        kind, details = delivery.report
        self._last[delivery.key] = delivery
        event: Event = kind(self._jobs[delivery.key], delivery.worker, *details)
        if isinstance(event, Finished | Failed):
            del self._jobs[delivery.key]
        if delivery.log and self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a") as file:
                file.write(delivery.log)
        return event

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Say whether the job that was evaluated goes on; every `Evaluated` is answered once."""
        if key in self._last:
            self._commands.append(self._messages.Answer(key, self._last[key].attempt, go_on))

    def forget_checkpoint(self, key: JobKey) -> None:
        """The result of a job is stored: the dispatcher need not keep it, nor is there anything to go on with."""
        training = self._trainings.pop(key, None)
        self._last.pop(key, None)
        self._losses.pop(key, None)
        if training is not None and not self._closed:
            self._commands.append(self._messages.Forget(key))
            if self._shared is not None:
                with contextlib.suppress(OSError):  # It costs room, and no result.
                    self._shared.remove(shared_name(key, training))

    def close(self) -> None:
        """End all workers and the dispatcher; what they were doing is dropped, but for their checkpoints."""
        if self._closed:
            return
        self._closed = True
        self._jobs.clear()
        with contextlib.suppress(ValueError, self._ray.exceptions.RayError):
            self._ray.kill(self._ray.get_actor(self._name, namespace=_NAMESPACE))
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connected:
            self._ray.shutdown()

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find_dispatcher(self) -> None:
        """Take over the dispatcher of this name, or start one, and ask it for all jobs that have not ended."""
        deadline = time.monotonic() + _SECONDS_TO_ANSWER
        search = uuid4().hex
        while True:
            try:
                dispatcher = self._start_dispatcher()
                if self._ray.get(dispatcher.connect.remote(search, self._settings), timeout=_SECONDS_TO_ANSWER):
                    break
                self._ray.kill(dispatcher)  # It has other workers than are needed now.
            except self._ray.exceptions.GetTimeoutError as error:
                raise Failure("the cluster does not answer: go on when it does") from error
            except (ValueError, self._ray.exceptions.RayActorError) as error:  # It ends, or begins anew.
                if time.monotonic() > deadline:
                    raise Failure(f"no dispatcher can be started on the cluster: {error}") from error
            time.sleep(0.2)
        self._dispatcher, self._search = dispatcher, search
        self._commands = [self._messages.Submit(key, self._trainings[key]) for key in self._jobs]
        self._last.clear()

    def _start_dispatcher(self) -> Any:
        kind: Any = self._ray.remote(self._messages.Dispatcher)
        return kind.options(
            name=self._name,
            namespace=_NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
            # On the head node, whose loss ends the cluster anyway.
            resources={"node:__internal_head__": 0.0001},
            max_restarts=-1,
            max_concurrency=20_000,
        ).remote(self._settings)


def _require_resources(workers: int | None, cpus: float, gpus: float) -> None:
    if workers is not None and workers < 1:
        raise BadInput(f"workers is {workers}, but must be at least 1")
    for name, value in (("cpus", cpus), ("gpus", gpus)):
        if not (math.isfinite(value) and value >= 0):
            raise BadInput(f"{name} is {value}, but must be a number that is not negative")
    if not cpus + gpus:
        raise BadInput(
            "cpus and gpus are both 0, but a training needs some of one: a cluster has room for any number else"
        )
    if gpus > 1 and gpus != int(gpus):
        raise BadInput(f"gpus is {gpus:g}, but more than one must be a whole number")


def _connect(ray: Any, address: str) -> bool:
    """Connect this process; returns whether it was not connected before."""
    if ray.is_initialized():
        return False
    try:
        ray.init(address=address, namespace=_NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        words = str(error).strip().partition("\n")[0]
        raise BadInput(f"there is no Ray cluster at the address {address!r}: {words}") from error
    return True


def require_cluster(address: str) -> None:
    """Find out whether a cluster can be connected to. Ray itself waits for one that is not there, perhaps for ever.

    Raises:
        BadInput: If Ray is not installed, or nothing answers at the address.
    """
    with extra("ray", "a cluster needs"):
        importlib.import_module("ray")
    if address == "auto":
        known = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
        address = os.environ.get("RAY_ADDRESS", "") or (known.read_text().strip() if known.exists() else "")
        if not address:
            raise BadInput(
                "there is no Ray cluster on this machine: start one with `ray start --head`, or give its --address"
            )
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise BadInput(f"address is {address!r}, but must be 'auto' or host:port")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise BadInput(f"no Ray cluster answers at the address {address!r}: {error}") from error
    if host in _LOOPBACK and not _answers_beyond_loopback(int(port)):
        os.environ.update(_ON_LOOPBACK)
        constants = sys.modules.get("ray._private.ray_constants")
        if constants is not None:  # Ray has read the variable before.
            vars(constants)["ENABLE_RAY_CLUSTER"] = False


def _answers_beyond_loopback(port: int) -> bool:
    """Whether the cluster listens at this machine's address in its network, too."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # Nothing is sent; the system says which address it would send from.
            own = probe.getsockname()[0]
        socket.create_connection((own, port), timeout=2.0).close()
    except OSError:
        return False
    return True
