// The page: opens the session and draws the shell.
import { render } from "preact";
import { keepHighlights } from "./model/highlights.ts";
import { listenForKeys } from "./model/keys.ts";
import { openLive } from "./model/live/live-session.ts";
import { keepPreviews } from "./model/previews.ts";
import { openSession } from "./model/session.ts";
import { keepSettings } from "./model/settings.ts";
import { keepNotices } from "./model/shell-state.ts";
import { App } from "./views/shell/app.tsx";
import { registerShellKeys } from "./views/shell/shell-keys.ts";

keepSettings();
openSession();
openLive();
keepHighlights();
keepPreviews();
keepNotices();
registerShellKeys();
listenForKeys();
render(<App />, document.getElementById("app")!);
