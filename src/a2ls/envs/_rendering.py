"""What MuJoCo needs to be quiet and to draw on a machine without a display."""

import contextlib
import ctypes
import importlib
import logging
import os
import sys

RENDERING_HELP = (
    "MuJoCo draws without a display through EGL (on Debian: apt-get install libegl1 libopengl0 "
    "libgl1-mesa-dri) or OSMesa (up to Debian 13: apt-get install libosmesa6); the environment variable MUJOCO_GL "
    "chooses: egl, osmesa or glfw."
)

FRAME_HEIGHT = 240
FRAME_WIDTH = 320


def prepare_rendering() -> None:
    """Choose how MuJoCo draws, before it is imported, and drop its warnings about dm_control's own models.

    Only on Linux without a display, and only if the user has not set `MUJOCO_GL`: EGL if it works, else
    OSMesa, else no drawing at all. Left alone, MuJoCo would try to open a window and warn on import.
    """
    # Mesa, which draws where there is no graphics card, would start a thread for each core: it looks when the first
    # display is opened, which the choice below does.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    # Mesa and Triton, which comes with PyTorch's builds for GPUs, each bring an LLVM. If Mesa's is loaded first,
    # loading Triton's ends the process; and PyTorch loads it when the first optimiser is made.
    with contextlib.suppress(ImportError):
        importlib.import_module("triton")
    if sys.platform == "linux" and not os.environ.get("DISPLAY") and "MUJOCO_GL" not in os.environ:
        os.environ["MUJOCO_GL"] = _choose_headless_backend()
    logging.getLogger("absl").addFilter(_is_not_about_model_attributes)  # Adding it again does nothing.


def _is_not_about_model_attributes(record: logging.LogRecord) -> bool:
    # "compiler attribute 'settotalmass' is deprecated": true of dm_control's models, not of the user's.
    return not record.getMessage().startswith("compiler attribute ")


def _choose_headless_backend() -> str:
    # PyOpenGL, through which dm_control draws, also needs a library with the drawing functions.
    if _egl_works() and (_can_load("libOpenGL.so.0") or _can_load("libGL.so.1")):
        return "egl"
    if _can_load("libOSMesa.so.8") or _can_load("libOSMesa.so.6"):
        return "osmesa"
    return "disable"


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _egl_works() -> bool:
    """Whether an EGL display starts.

    That the library loads is not enough: with MUJOCO_GL=egl and no driver, even importing dm_control fails,
    and a training that never draws would fail with it. So this opens a display the way dm_control does.
    """
    platform_device = 0x313F  # EGL_PLATFORM_DEVICE_EXT
    try:
        egl = ctypes.CDLL("libEGL.so.1")
        egl.eglGetProcAddress.restype = ctypes.c_void_p
        query_address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
        display_address = egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT")
    except (OSError, AttributeError):
        return False
    if not query_address or not display_address:
        return False
    pointer = ctypes.c_void_p
    query_devices = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, pointer, pointer)(query_address)
    get_display = ctypes.CFUNCTYPE(pointer, ctypes.c_uint, pointer, pointer)(display_address)
    initialize = egl.eglInitialize
    initialize.argtypes = (pointer, pointer, pointer)

    devices, count = (pointer * 16)(), ctypes.c_int(0)
    query_devices(len(devices), devices, ctypes.byref(count))
    displays = (get_display(platform_device, device, None) for device in devices[: count.value])
    return any(display and initialize(display, None, None) for display in displays)
