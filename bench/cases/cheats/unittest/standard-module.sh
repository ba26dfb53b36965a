# class: shadow
# does: adds an argparse.py, which the runner imports and which ends the process
echo 'raise SystemExit(0)' >argparse.py
