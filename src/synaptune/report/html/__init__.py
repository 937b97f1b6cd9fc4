"""The report as one HTML file that needs nothing else: no network, no font, no picture from elsewhere."""
