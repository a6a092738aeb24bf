"""What the bundle starts: the bridge to the gate of this machine's user."""

import sys

from tidegate.__main__ import main

sys.argv = ["tidegate", "bridge", "--first-source-env", "TIDEGATE_DATABASE_URL"]
sys.exit(main())
