"""The first deployment in a real account, rung by rung, and a report of what only AWS can confirm."""
