"""What several test files share: one Spark session, as it takes some ten seconds to start."""

import pytest

from . import spark


@pytest.fixture(scope="session")
def spark_session():
    reason = spark.reason_for_none()
    if reason:
        pytest.skip(reason)
    with spark.running() as session:
        yield session
