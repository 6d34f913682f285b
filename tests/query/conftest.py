from pathlib import Path

import pytest

from tests.query.lake_rig import LakeRig


@pytest.fixture
def rig(tmp_path: Path) -> LakeRig:
    return LakeRig(tmp_path / "lake")
