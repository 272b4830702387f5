#!/bin/sh
# Runs this Python on the newest Mesa that Debian has, whatever the machine's own is: cooperative matrices on lavapipe,
# and what AMD's compiler makes of a kernel for a chip that is not here.
#
#   benchmarks/mesa_newest.sh FOLDER setup                     once: Debian 13 and its backports' Mesa into FOLDER/root (root's
#                                                              rights, debootstrap, 0.9 GB, a minute or two)
#   benchmarks/mesa_newest.sh FOLDER lavapipe SCRIPT [ARG ...]  matrices of 8x8x8 in software: results are real, times are not
#                                                              a card's
#   benchmarks/mesa_newest.sh FOLDER gfx1201 SCRIPT [ARG ...]   RADV on a stub of the kernel driver: statistics and machine
#                                                              code are real, nothing is ever run
#
# PYTHON: a virtual environment's interpreter (default: python3 of the one that is active). It runs under the new system's
# loader and libraries, so nothing is installed there; extension modules are the machine's own.
set -eu
folder=$1 mode=$2
shift 2
root=$(mkdir -p "$folder" && cd "$folder" && pwd)/root
libraries=$root/usr/lib/x86_64-linux-gnu

if [ "$mode" = setup ]; then
    [ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase trixie "$root"
    sed -n 's/ trixie main/ trixie-backports main/p' "$root/etc/apt/sources.list" > "$root/etc/apt/sources.list.d/new.list"
    chroot "$root" apt-get update
    chroot "$root" apt-get install -y --no-install-recommends -t trixie-backports mesa-vulkan-drivers mesa-drm-shim libvulkan1
    exit
fi

python=$(readlink -f "$(command -v "${PYTHON:-python3}")")
venv=$(dirname "$(dirname "$(command -v "${PYTHON:-python3}")")")
case $mode in
    lavapipe) driver=libvulkan_lvp.so shim= ;;
    gfx*) driver=libvulkan_radeon.so shim=$libraries/libamdgpu_noop_drm_shim.so ;;
    *) echo "$0: $mode is neither setup, lavapipe nor a gfx number" >&2; exit 2 ;;
esac
[ -e "$libraries/$driver" ] || { echo "$0: no $driver in $root: run $0 $folder setup" >&2; exit 2; }
[ -z "$shim" ] || [ -e "$shim" ] || { echo "$0: no $shim: run $0 $folder setup" >&2; exit 2; }
[ -e "$venv/pyvenv.cfg" ] || { echo "$0: PYTHON is no virtual environment's: $venv has no pyvenv.cfg" >&2; exit 2; }

# A virtual environment beside the system, whose python starts under the system's loader: so do the workers that it starts.
own=$(dirname "$root")/python
mkdir -p "$own/bin"
cp "$venv/pyvenv.cfg" "$own/pyvenv.cfg"
ln -sfn "$(cd "$venv/lib" && pwd)" "$own/lib"
cat > "$own/bin/python.new" <<END
#!/bin/sh
exec "$root/lib64/ld-linux-x86-64.so.2" --argv0 "$own/bin/python" --library-path \
    "$libraries:$root/lib/x86_64-linux-gnu:$(dirname "$python")/../lib:/usr/lib/x86_64-linux-gnu" "$python" "\$@"
END
chmod +x "$own/bin/python.new"
mv "$own/bin/python.new" "$own/bin/python"

manifest=$(dirname "$root")/$driver.json
printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' "$libraries/$driver" > "$manifest"
export VK_DRIVER_FILES="$manifest" VK_ICD_FILENAMES="$manifest" AMDGPU_GPU_ID="$mode"
if [ -n "$shim" ]; then
    # The stub is built for the new system: only the interpreter, already under its loader, may load it.
    exec "$root/lib64/ld-linux-x86-64.so.2" --preload "$shim" --argv0 "$own/bin/python" --library-path \
        "$libraries:$root/lib/x86_64-linux-gnu:$(dirname "$python")/../lib:/usr/lib/x86_64-linux-gnu" "$python" "$@"
fi
exec "$own/bin/python" "$@"
