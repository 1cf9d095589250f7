"""One cluster of three processes for all tests that leave it as it was."""

import pytest
from tests.distributed.clusters import assert_nothing_left, cluster_of


@pytest.fixture(scope="session")
def shared_client():
    """The client of a cluster of three workers, each a process with one thread."""
    with cluster_of(3) as client:
        yield client


@pytest.fixture
def client(shared_client):
    """As `shared_client`; after the test nothing of a fit may be left on the cluster."""
    yield shared_client
    assert_nothing_left(shared_client)
