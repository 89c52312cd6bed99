"""What makes moto quick to import, to be imported before it: botocore's data, read once in this process.

moto opens a session per service. Each would parse endpoints and service models again, a third of the server's CPU time.
"""

import gc
from functools import cache

import botocore.session
from botocore.loaders import create_loader

botocore.session.create_loader = cache(create_loader)
gc.set_threshold(50_000)  # an import makes thousands of classes and no garbage
