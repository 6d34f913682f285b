"""Every Dask cluster your team ever ran, on one page."""

__version__ = "0.1.0"
