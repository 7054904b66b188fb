"""Check records: python verify_record.py records/<track>/<record>..."""

from harness.errors import run_command
from harness.verify import main

if __name__ == "__main__":
    run_command(main)
