"""The 26 games of Atari-100k, by name."""

from __future__ import annotations

ATARI_NAMESPACE = "ALE/"

ATARI_GAMES: dict[str, str] = {
    "alien": "ALE/Alien-v5",
    "amidar": "ALE/Amidar-v5",
    "assault": "ALE/Assault-v5",
    "asterix": "ALE/Asterix-v5",
    "bank-heist": "ALE/BankHeist-v5",
    "battle-zone": "ALE/BattleZone-v5",
    "boxing": "ALE/Boxing-v5",
    "breakout": "ALE/Breakout-v5",
    "chopper-command": "ALE/ChopperCommand-v5",
    "crazy-climber": "ALE/CrazyClimber-v5",
    "demon-attack": "ALE/DemonAttack-v5",
    "freeway": "ALE/Freeway-v5",
    "frostbite": "ALE/Frostbite-v5",
    "gopher": "ALE/Gopher-v5",
    "hero": "ALE/Hero-v5",
    "jamesbond": "ALE/Jamesbond-v5",
    "kangaroo": "ALE/Kangaroo-v5",
    "krull": "ALE/Krull-v5",
    "kung-fu-master": "ALE/KungFuMaster-v5",
    "ms-pacman": "ALE/MsPacman-v5",
    "pong": "ALE/Pong-v5",
    "private-eye": "ALE/PrivateEye-v5",
    "qbert": "ALE/Qbert-v5",
    "road-runner": "ALE/RoadRunner-v5",
    "seaquest": "ALE/Seaquest-v5",
    "up-n-down": "ALE/UpNDown-v5",
}
"""The games that the paper's Atari agents are compared on: short name -> Gymnasium id."""


def atari_game(name: str) -> str | None:
    """The short name of the game of Atari-100k that `name` means, in whichever way it is written; None for others."""
    short = name.lower().replace("_", "-")
    if short in ATARI_GAMES:
        return short
    return next((game for game, gymnasium_id in ATARI_GAMES.items() if gymnasium_id == name), None)


def is_atari(name: str) -> bool:
    """Whether `name` means an Atari game, one of the 26 or any other of the Arcade Learning Environment."""
    return atari_game(name) is not None or name.rpartition(":")[2].startswith(ATARI_NAMESPACE)
