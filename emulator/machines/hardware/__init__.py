"""Hardware of instance types: what their tools print, as recorded, and fakes of these tools."""
