"""Why a deployment failed."""
