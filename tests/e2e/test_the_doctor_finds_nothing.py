"""An operator asks a running plane to prove its isolation."""

from caisson.client.doctor.examination import Examination
from tests.support.planes import Plane


async def test_every_check_holds_on_a_whole_plane(plane: Plane) -> None:
    examination = Examination(plane.acme, api_key=plane.stack.platform_key, proxy_url=None)

    findings = [finding async for finding in examination.findings()]

    assert [f"{finding.check}: {finding.reason}" for finding in findings if not finding.holds] == []
    assert {finding.check for finding in findings} >= {
        "gateway",
        "no secret in any environment",
        "tenant's own uid",
        "other tenant's files",
        "other tenant's processes",
        "outbound: metadata address",
        "outbound: gateway's own port",
        "proxy from inside",
        "other tenant was there",
    }
