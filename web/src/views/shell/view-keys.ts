// What the keys mean that the views and the timeline's lanes handle themselves while they have the focus, for the help.
import { describeKeys } from "../../model/keys.ts";

export function describeViewKeys(): void {
  describeKeys("Graph", [
    { key: "ArrowLeft", what: "Turn the picture; in two dimensions move it" },
    { key: "ArrowRight", what: "Turn the picture; in two dimensions move it" },
    { key: "ArrowUp", what: "Turn the picture; in two dimensions move it" },
    { key: "ArrowDown", what: "Turn the picture; in two dimensions move it" },
    { key: "Shift+ArrowLeft", what: "Move the picture, any arrow" },
    { key: "+", what: "Nearer" },
    { key: "-", what: "Farther" },
    { key: "f", what: "All of it" },
    { key: "0", what: "All of it" },
    { key: "Enter", what: "Open the selected function" },
    { key: "Escape", what: "Select nothing" },
    { key: "o", what: "Point at what is selected: its neighbours, and particles on its edges" },
    { key: "Ctrl+ArrowLeft", what: "Move what is selected, any arrow" },
    { key: "Ctrl+Z", what: "Take the last move back" },
    { key: "r", what: "Put what is selected where the layout has it" },
    { key: "R", what: "Put everything where the layout has it" },
  ]);
  describeKeys("Function", [
    { key: "ArrowUp", what: "To a block that leads here" },
    { key: "ArrowDown", what: "To a block that comes next" },
    { key: "ArrowLeft", what: "To the block beside" },
    { key: "ArrowRight", what: "To the block beside" },
    { key: "Shift+ArrowLeft", what: "Move the picture, any arrow" },
    { key: "+", what: "Nearer" },
    { key: "-", what: "Farther" },
    { key: "f", what: "All of it" },
    { key: "0", what: "All of it" },
    { key: "Home", what: "To the entry" },
    { key: "Enter", what: "Into the function that the block calls" },
  ]);
  describeKeys("Listing", [
    { key: "ArrowUp", what: "Previous or next instruction" },
    { key: "ArrowDown", what: "Previous or next instruction" },
    { key: "PageUp", what: "A page back or on" },
    { key: "PageDown", what: "A page back or on" },
    { key: "Home", what: "To the first or last" },
    { key: "End", what: "To the first or last" },
    { key: "Enter", what: "The block in its function" },
    { key: "g", what: "Go to an address or a function" },
  ]);
  describeKeys("Processes", [
    { key: "ArrowUp", what: "Previous or next row" },
    { key: "ArrowDown", what: "Previous or next row" },
    { key: "ArrowLeft", what: "Close a row, or open it" },
    { key: "ArrowRight", what: "Close a row, or open it" },
    { key: "Enter", what: "Look at the process or thread" },
    { key: "Shift+Enter", what: "Add a thread to those looked at, or take it away" },
  ]);
  describeKeys("Calls", [
    { key: "ArrowUp", what: "Previous or next call" },
    { key: "ArrowDown", what: "Previous or next call" },
    { key: "PageUp", what: "A screen back or on" },
    { key: "PageDown", what: "A screen back or on" },
    { key: "Home", what: "To the first or last of the page" },
    { key: "End", what: "To the first or last of the page" },
    { key: "Enter", what: "Select the block that called, and go to its time; in the chart, choose the stretch" },
    { key: "ArrowLeft", what: "In the chart: a bar back or on" },
    { key: "ArrowRight", what: "In the chart: a bar back or on" },
    { key: "Shift+ArrowRight", what: "In the chart: extend the stretch, either arrow" },
  ]);
  describeKeys("Compare", [
    { key: "v", what: "The next part of the comparison" },
    { key: "x", what: "Swap A and B" },
    { key: "s", what: "In the graph, one picture or two beside each other" },
    { key: "n", what: "Both replays to the next parting, or the one before" },
    { key: "p", what: "Both replays to the next parting, or the one before" },
    { key: "(", what: "Both replays a block back or on" },
    { key: ")", what: "Both replays a block back or on" },
  ]);
  describeKeys("Lanes of the timeline", [
    { key: "ArrowLeft", what: "Earlier or later" },
    { key: "ArrowRight", what: "Earlier or later" },
    { key: "ArrowUp", what: "Cursor to the thread above or below" },
    { key: "ArrowDown", what: "Cursor to the thread above or below" },
    { key: "+", what: "Nearer" },
    { key: "-", what: "Farther" },
  ]);
}
