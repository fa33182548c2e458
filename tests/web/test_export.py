"""What is taken out of the page: pictures, videos and tables, and the page itself as a file."""

from __future__ import annotations

import base64
import csv
import io
import re
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Download, Locator, Page, expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.store.columns import Array
from tests.web.conftest import OpenViewer
from tests.web.graph_page import GraphPage
from tests.web.traces import HOSTILE_NAMES, find_trace
from tests.web.viewer import LARGE, Viewer

SVG = "{http://www.w3.org/2000/svg}"


def open_dialog(page: Page) -> Locator:
    page.keyboard.press("e")
    return page.get_by_role("dialog", name="Export")


def take(page: Page, dialog: Locator, button: str) -> Download:
    """What is saved when a button is pressed."""
    with page.expect_download() as found:
        dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog.get_by_role("status")).to_have_text(re.compile(re.escape(found.value.suggested_filename)))
    return found.value


def content_of(download: Download) -> bytes:
    return Path(download.path()).read_bytes()


def pixels_of(viewer: Viewer, png: bytes) -> Array:
    """Pixels of a picture, [row, column, channel]: decoded by the browser, which is quicker than Python."""
    width, height, data = viewer.page.evaluate(
        """async (text) => {
          const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
          const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
          context.drawImage(picture, 0, 0);
          const { data } = context.getImageData(0, 0, picture.width, picture.height);
          const parts = [];
          for (let at = 0; at < data.length; at += 32768) {
            parts.push(String.fromCharCode(...data.subarray(at, at + 32768)));
          }
          return [picture.width, picture.height, btoa(parts.join(""))];
        }""",
        base64.b64encode(png).decode(),
    )
    found: Array = np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)
    assert (found[..., 3] == 255).all(), "a picture hides what is behind it"
    return found[..., :3]


def count_colors(pixels: Array) -> int:
    """How many colours there are."""
    return len(np.unique(pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)))


def elements(root: xml.etree.ElementTree.Element, name: str, kind: str) -> list[xml.etree.ElementTree.Element]:
    return [one for one in root.iter(f"{SVG}{name}") if one.get("class") == kind]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_picture_of_the_graph_has_what_is_seen(open_viewer: OpenViewer, theme: str) -> None:
    viewer = open_viewer(color_scheme=theme, viewport={"width": 1000, "height": 640})
    viewer.open("shapes-counts", layout="circle", dimensions=2)
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    dialog = open_dialog(viewer.page)
    dialog.get_by_label("Scale").select_option("2")
    download = take(viewer.page, dialog, "PNG")
    assert re.fullmatch(r"shapes-counts-\d+-graph\.png", download.suggested_filename)
    pixels = pixels_of(viewer, content_of(download))
    box = graph.canvas.bounding_box()
    assert box is not None
    assert pixels.shape[:2] == (round(2 * box["height"]), round(2 * box["width"]))
    ground = viewer.page.evaluate("getComputedStyle(document.body).getPropertyValue('--ground').trim()")
    assert pixels[2, 2].tolist() == [int(ground[at : at + 2], 16) for at in (1, 3, 5)]
    assert count_colors(pixels) > 500
    # The legend lies in the lower left corner: there is more than ground there, and in the middle as well.
    height, width = pixels.shape[:2]
    for part in (pixels[height - 100 :, 30:400], pixels[height // 4 : -height // 4, width // 4 : -width // 4]):
        assert count_colors(part) > 20
    # What is on the screen is as it was.
    graph.wait_for_whole()
    assert graph.canvas.evaluate("(canvas) => canvas.width") == round(box["width"])


@pytest.mark.parametrize(("layout", "dimensions"), [("circle", 2), ("cylinder", 3)])
def test_the_graph_as_svg_has_every_node(viewer: Viewer, layout: str, dimensions: int) -> None:
    viewer.open("hostile", layout=layout, dimensions=dimensions, select="f1")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    download = take(viewer.page, open_dialog(viewer.page), "SVG")
    root = xml.etree.ElementTree.fromstring(content_of(download).decode())
    nodes = elements(root, "circle", "node")
    # Of so few blocks each is drawn.
    assert len(nodes) == graph.number("drawnNodes") == ProcessGraph(Trace(find_trace("hostile")), 0).n_blocks
    assert len(elements(root, "path", "edge")) == graph.number("drawnEdges") > 0
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for node in nodes:
        assert 0 <= float(node.attrib["cx"]) <= width and 0 <= float(node.attrib["cy"]) <= height
    titles = [node.findtext(f"{SVG}title") or "" for node in nodes]
    assert all(titles)
    shown = "\n".join(titles)
    for name in HOSTILE_NAMES[1:5]:
        assert name in shown
    assert len(list(root.iter(f"{SVG}text"))) > 3
    # Only what draws: nothing in it that runs or asks for anything.
    allowed = {"svg", "g", "rect", "circle", "path", "line", "text", "title", "linearGradient", "stop"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= allowed
    assert not [name for one in root.iter() for name in one.attrib if name.startswith("on") or "href" in name]


@pytest.mark.parametrize(("trace", "has_counts"), [("shapes-counts", True), ("shapes-coverage", False)])
def test_labels_say_how_often_only_where_it_was_counted(viewer: Viewer, trace: str, has_counts: bool) -> None:
    viewer.open(trace, layout="circle", dimensions=2)
    GraphPage(viewer).wait_for_whole()
    root = xml.etree.ElementTree.fromstring(content_of(take(viewer.page, open_dialog(viewer.page), "SVG")).decode())
    labels = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert len(labels) > 3
    assert any("×" in label for label in labels) == has_counts


def test_a_graph_too_large_for_svg_is_refused(open_viewer: OpenViewer) -> None:
    viewer = open_viewer(viewport=LARGE)
    viewer.open("small", layout="circle", dimensions=2)
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    n = graph.number("drawnNodes") + graph.number("drawnEdges")
    assert n > 20_000
    dialog = open_dialog(viewer.page)
    dialog.get_by_role("button", name="SVG", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text(
        f"{n:,.0f} nodes and edges are too many for an SVG, which may have 20,000: "
        "come nearer, fold or filter; or take the PNG"
    )


@pytest.mark.glance
def test_a_function_as_pictures(viewer: Viewer) -> None:
    viewer.open("hostile", view="function", select="f2")
    viewer.page.locator("[data-flow-canvas][data-scale]").wait_for()
    graph = ProcessGraph(Trace(find_trace("hostile")), 0)
    dialog = open_dialog(viewer.page)
    root = xml.etree.ElementTree.fromstring(content_of(take(viewer.page, dialog, "SVG")).decode())
    nodes = elements(root, "g", "node")
    blocks = range(int(graph.first_block[2]), int(graph.first_block[3]))
    assert [(node.findtext(f"{SVG}title") or "").split(",")[0] for node in nodes] == [
        hex(int(graph.app_pc[block])) for block in blocks
    ]
    assert root.findtext(f"{SVG}title") == HOSTILE_NAMES[2]
    dialog.get_by_label("Scale").select_option("1")
    pixels = pixels_of(viewer, content_of(take(viewer.page, dialog, "PNG")))
    assert count_colors(pixels) > 50


@pytest.mark.timing
def test_a_replay_as_a_video(viewer: Viewer) -> None:
    viewer.open("shapes-full", layout="circle", dimensions=2)
    GraphPage(viewer).wait_for_whole()
    viewer.page.locator("[data-timeline] input.position").wait_for()
    dialog = open_dialog(viewer.page)
    dialog.get_by_label("Seconds").fill("2")
    dialog.get_by_label("blocks a second").fill("3000")
    dialog.get_by_role("button", name="Record WebM").click()
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog.get_by_role("button", name="Record WebM")).to_be_enabled()
    download = take(viewer.page, dialog, "Record WebM")
    assert download.suggested_filename.endswith("-replay.webm")
    assert int(viewer.dataset("[data-timeline]")["position"]) > 0
    # The page's own policy lets it show no videos.
    player = viewer.context.new_page()
    played = player.evaluate(
        """async (text) => {
          const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          const video = document.createElement("video");
          video.muted = true;
          video.src = URL.createObjectURL(new Blob([bytes], { type: "video/webm" }));
          await new Promise((done, fail) => { video.onloadeddata = done; video.onerror = fail; });
          const look = () => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
            const context = canvas.getContext("2d");
            context.drawImage(video, 0, 0);
            return context.getImageData(0, 0, canvas.width, canvas.height).data;
          };
          const duration = video.duration;
          const first = look();
          video.currentTime = duration * 0.8;
          await new Promise((done) => { video.onseeked = done; });
          const last = look();
          const colors = new Set();
          let changed = 0;
          for (let i = 0; i < last.length; i += 4) {
            colors.add((last[i] << 16) | (last[i + 1] << 8) | last[i + 2]);
            changed += Math.abs(last[i] - first[i]) > 40 ? 1 : 0;
          }
          // From the beginning to the end, by itself.
          video.currentTime = 0;
          await new Promise((done) => { video.onseeked = done; });
          const times = [];
          const note = (_, { mediaTime }) => { times.push(mediaTime); video.requestVideoFrameCallback(note); };
          video.requestVideoFrameCallback(note);
          const ended = new Promise((done) => { video.onended = done; });
          await video.play();
          await ended;
          const frames = new Set(times).size;
          const rises = times.every((time, i) => i === 0 || time >= times[i - 1]);
          return { duration, width: video.videoWidth, colors: colors.size, changed, frames, rises, last: times.at(-1) };
        }""",
        base64.b64encode(content_of(download)).decode(),
    )
    player.close()
    assert 0.5 < played["duration"] < 20
    assert played["frames"] > 5 and played["rises"] and played["width"] > 100
    assert played["last"] > played["duration"] / 2
    assert played["colors"] > 100 and played["changed"] > 100


def test_without_an_order_there_is_no_video(viewer: Viewer) -> None:
    viewer.open("shapes-counts")
    dialog = open_dialog(viewer.page)
    expect(dialog.get_by_text("the order was not recorded in mode counts")).to_be_visible()
    expect(dialog.get_by_role("button", name="Record WebM")).to_be_disabled()


@pytest.mark.glance
def test_tables_of_what_is_selected(viewer: Viewer) -> None:
    trace = Trace(find_trace("hostile"))
    graph = ProcessGraph(trace, 0)
    counts = graph.count()
    viewer.open("hostile", select="f1")
    dialog = open_dialog(viewer.page)
    rows = list(csv.DictReader(io.StringIO(content_of(take(viewer.page, dialog, "CSV")).decode())))
    blocks = range(int(graph.first_block[1]), int(graph.first_block[2]))
    assert [(int(row["block"]), int(row["address"], 16), row["function"], int(row["executions"])) for row in rows] == [
        (block, int(graph.app_pc[block]), HOSTILE_NAMES[1], int(counts.blocks[block])) for block in blocks
    ]
    dialog.get_by_label("Rows").select_option("edges")
    dialog.get_by_label(re.compile("All of the process")).check()
    table = pa.ipc.open_file(pa.BufferReader(content_of(take(viewer.page, dialog, "Arrow")))).read_all()
    stored = trace.edges
    wanted = Counter(zip(stored["source_block_id"].to_pylist(), stored["target_block_id"].to_pylist(), strict=True))
    found = Counter(zip(table["source_block_id"].to_pylist(), table["target_block_id"].to_pylist(), strict=True))
    assert found == wanted
