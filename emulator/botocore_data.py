"""botocore's data, read once in this process, to be imported before moto, which opens a session per service.

Each session would parse endpoints and service models again, a third of the server's CPU time.
"""

from functools import cache

import botocore.session
from botocore.loaders import create_loader

botocore.session.create_loader = cache(create_loader)
