# A2LS with all of its extras, on a CPU: docs/docker.md
FROM python:3.12-slim
# What drawing without a screen needs: scripts/system-libraries.
RUN apt-get update && apt-get install --yes --no-install-recommends libegl1 libopengl0 libgl1-mesa-dri && rm -rf /var/lib/apt/lists/*
WORKDIR /a2ls
COPY . .
# uv takes the CPU build of PyTorch; plain pip would bring gigabytes of CUDA packages.
RUN pip install --no-cache-dir uv && uv pip install --system --no-cache --torch-backend cpu --constraint constraints.txt '.[all]'
# Whoever runs the container (`--user`) has a home, and a place for compiled updates. Those for this processor are made now.
ENV HOME=/tmp NUMBA_CACHE_DIR=/numba
RUN python -c 'from a2ls import recorder; recorder.prepare()' && chmod -R a+rwX /numba
WORKDIR /data
ENTRYPOINT ["a2ls"]
