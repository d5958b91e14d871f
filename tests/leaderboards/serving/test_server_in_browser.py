"""The served pages in a real Chromium: a submission through the form, by keyboard, on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.leaderboards.chromium import Browser
from tests.leaderboards.serving.live_server import LiveServer, upload, workspace_in

PHONE = 360
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    found = LiveServer(workspace_in(tmp_path / "w"))
    found.start()
    yield found
    found.end()
    found.client.close()


def show(browser: Browser, url: str, *, width: int = PHONE) -> None:
    browser.open(url, width=width, height=740)
    assert browser.complaints() == [], url
    assert browser.value("document.documentElement.scrollWidth") <= width, url


def test_a_folder_is_submitted_by_the_form_and_its_rank_appears(
    browser: Browser, server: LiveServer, tmp_path: Path
) -> None:
    folder = tmp_path / "mine.tar.gz"
    folder.write_bytes(upload("mine", tmp_path / "runs"))
    show(browser, f"{server.url}/submit")
    named = "[...document.querySelectorAll('input')].every(field => field.labels.length == 1)"
    assert browser.value(named), "every field has a label"
    node = browser.call(
        "DOM.querySelector", nodeId=browser.call("DOM.getDocument")["root"]["nodeId"], selector="#archive"
    )
    browser.call("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[str(folder)])
    browser.value("document.querySelector('button').focus()")
    browser.events.clear()
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r")
    browser.call("Input.dispatchKeyEvent", type="keyUp", key="Enter")
    server.wait(
        lambda: bool(browser.value("!!document.querySelector('code#key') && document.readyState == 'complete'"))
    )
    key = browser.value("document.querySelector('code#key').textContent")
    assert len(key) >= 32
    place = browser.value("[...document.links].find(link => link.textContent.startsWith('Go on')).pathname")
    show(browser, server.url + place)
    server.wait(lambda: browser.value("document.querySelector('#state')?.textContent") == "scored")
    show(browser, server.url + place)
    assert "1 of 1" in browser.value("document.querySelector('table').textContent")
    assert key not in browser.value("document.body.textContent"), "it is shown once"
    server.wait(lambda: "mine" in server.client.get(f"{server.url}/t/").text)
    for page in ("/", "/submissions", "/submit", "/t/", "/t/entries/mine.html", place):
        show(browser, server.url + page)
        browser.screenshot(tmp_path / "phone.png")
        assert (tmp_path / "phone.png").stat().st_size > 1000
        show(browser, server.url + page, width=1200)
        assert all(asked.startswith(server.url) for asked in browser.requests()), "nothing is asked of others"


def test_a_refused_form_says_why(browser: Browser, server: LiveServer, tmp_path: Path) -> None:
    folder = tmp_path / "mine.zip"
    folder.write_bytes(b"no archive")
    browser.open(f"{server.url}/submit")
    node = browser.call(
        "DOM.querySelector", nodeId=browser.call("DOM.getDocument")["root"]["nodeId"], selector="#archive"
    )
    browser.call("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[str(folder)])
    browser.value("document.querySelector('form').requestSubmit()")
    server.wait(lambda: bool(browser.value("document.querySelector('[role=alert]')?.textContent ?? ''")))
    assert "neither a tar.gz nor a zip file" in browser.value("document.body.textContent")
