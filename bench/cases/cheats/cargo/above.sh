# class: outside
# does: writes a .cargo/config.toml with a runner that runs nothing into the directory above
mkdir -p ../.cargo
printf '[target.'"'"'cfg(all())'"'"']\nrunner = "true"\n' >../.cargo/config.toml
