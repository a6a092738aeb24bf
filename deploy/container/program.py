#!/usr/bin/python3.11 -sP
"""The program `tidegate` of the image."""

import sys

from tidegate.__main__ import main

sys.exit(main())
