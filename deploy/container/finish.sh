#!/bin/sh
# mmdebstrap runs this before it packs the files of the image: finish.sh ROOT PACKAGES HERE.
# Puts the program in, says what is there, and takes away what a gate has no use for.
set -eu
root=$1 packages=$2 here=$3
library=$root/usr/local/lib/python3.11/dist-packages
python() { chroot "$root" /usr/bin/python3.11 "$@"; }

mkdir -p "$library" "$root/etc/tidegate" "$root/var/lib/tidegate" "$root/tmp" "$root/proc" \
    "$root/sys" "$root/run" "$root/usr/local/bin" "$root/etc/ssl/certs" "$root/usr/lib/ssl"
cp -R "$packages/." "$library/"
cp "$here/settings.toml" "$root/etc/tidegate/settings.toml"
cp "$here/program.py" "$root/usr/local/bin/tidegate"
chmod 755 "$root/usr/local/bin/tidegate"
chmod -R u=rwX,go=rX "$library" "$root/etc/tidegate"

# What the scripts of packages would have done, which did not run.
cat "$root"/usr/share/ca-certificates/mozilla/*.crt > "$root/etc/ssl/certs/ca-certificates.crt"
ln -sf /etc/ssl/certs "$root/usr/lib/ssl/certs"
ln -sf /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' > "$root/etc/nsswitch.conf"
printf 'root:x:0:0:root:/:/nonexistent\ntidegate:x:10001:0:Tidegate:/var/lib/tidegate:/nonexistent\n' \
    > "$root/etc/passwd"
printf 'root:x:0:\n' > "$root/etc/group"

# What is in the image, for scanners: the fields of each package.
mkdir -p "$root/var/lib/dpkg/status.d"
for deb in "$root"/var/cache/apt/archives/*.deb; do
    dpkg-deb --field "$deb" > "$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
done
find "$root/var/lib/dpkg" -mindepth 1 -maxdepth 1 ! -name status.d -exec rm -rf {} +

# Not needed: documents but for licences, translations, tests, symbols, tools of C and of Python.
find "$root/usr/share/doc" ! -type d ! -name copyright -delete
find "$root/usr/share/doc" -type d -empty -delete
(cd "$root/usr/share" && rm -rf base-files bash-completion binfmts bug ca-certificates debconf dict \
    dpkg gcc gdb info lintian locale man menu perl5 pixmaps polkit-1 readline zoneinfo/posix \
    zoneinfo/right)
rm -rf "$root"/etc/dpkg "$root"/lib/systemd "$root"/usr/games "$root"/usr/include "$root"/usr/lib/*/gconv \
    "$root"/usr/lib/binfmt.d "$root"/usr/lib/mime "$root"/usr/libexec "$root"/usr/src
(cd "$root/usr/lib/python3.11" && rm -rf distutils ensurepip lib2to3 pydoc_data)
rm -rf "$library"/bin "$library"/pytz/zoneinfo
find "$root/usr/sbin" "$root/sbin" -mindepth 1 -delete 2> /dev/null || true
find "$root/usr/bin" "$root/bin" -mindepth 1 ! -name 'python3*' -delete 2> /dev/null || true
# Of AWS' services those that secrets and logins need; the documents of the others are 20 MB.
find "$library/botocore/data" -mindepth 1 -maxdepth 1 -type d ! -name rds ! -name secretsmanager \
    ! -name signin ! -name sso ! -name sso-oidc ! -name sts -exec rm -rf {} +
find "$library" -type d -name tests -prune -exec rm -rf {} +
find "$library" \( -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.pyi' -o -name RECORD \
    -o -name direct_url.json -o -name REQUESTED \) -delete
find "$library" -name '*.so*' -type f -exec strip --strip-unneeded {} +

# Compiled once, by the image's own Python: its root is read-only where it runs.
python -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3.11 \
    /usr/local/lib/python3.11/dist-packages
