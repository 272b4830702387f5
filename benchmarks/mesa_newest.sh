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
# PYTHON: the interpreter (default python3). It runs under the new system's loader and libraries, so it need not be installed
# there; extension modules are the machine's own. Test: benchmarks/mesa_newest.sh FOLDER lavapipe -m pytest tests/kernels
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
home=$(dirname "$(command -v "${PYTHON:-python3}")")/$(basename "$python")
case $mode in
    lavapipe) driver=libvulkan_lvp.so shim= ;;
    gfx*) driver=libvulkan_radeon.so shim=$libraries/libamdgpu_noop_drm_shim.so ;;
    *) echo "$0: $mode is neither setup, lavapipe nor a gfx number" >&2; exit 2 ;;
esac
[ -e "$libraries/$driver" ] || { echo "$0: no $driver in $root: run $0 $folder setup" >&2; exit 2; }
[ -z "$shim" ] || [ -e "$shim" ] || { echo "$0: no $shim: run $0 $folder setup" >&2; exit 2; }

# The stub driver makes the graphics card; programs that this Python starts must not load it: WARPTILE scripts unset LD_PRELOAD.
manifest=$folder/$driver.json
printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' "$libraries/$driver" > "$manifest"
exec env VK_DRIVER_FILES="$manifest" VK_ICD_FILENAMES="$manifest" AMDGPU_GPU_ID="$mode" ${shim:+LD_PRELOAD="$shim"} \
    "$root/lib64/ld-linux-x86-64.so.2" --argv0 "$home" \
    --library-path "$libraries:$root/lib/x86_64-linux-gnu:$(dirname "$python")/../lib:/usr/lib/x86_64-linux-gnu" "$python" "$@"
