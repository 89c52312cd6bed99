"""What changes a deployment: settings files, deployments, the fleet, upgrades, recovery, images, and the end of it."""
