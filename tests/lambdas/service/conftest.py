from tests.query.conftest import rig

__all__ = ["rig"]
