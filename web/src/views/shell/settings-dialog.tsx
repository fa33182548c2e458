// What a reader likes: the theme, which panels there are, how the graph is drawn.
import { resetSettings, type Settings, settings, updateSettings } from "../../model/settings.ts";
import { LookSliders } from "../graph/look-controls.tsx";
import { Dialog, DialogHead } from "./dialog.tsx";

type Switch = { [K in keyof Settings]: Settings[K] extends boolean ? K : never }[keyof Settings];

const SWITCHES: [Switch, string][] = [
  ["showsFunctions", "Table of functions"],
  ["showsDetails", "Details"],
  ["showsTimeline", "Timeline"],
];

export function SettingsDialog() {
  const { theme } = settings.value;
  return (
    <Dialog name="settings" title="Settings">
      <DialogHead title="Settings" />
      <fieldset>
        <legend>Theme</legend>
        {(["dark", "light"] as const).map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="theme"
              value={name}
              checked={theme === name}
              onChange={() => updateSettings({ theme: name })}
            />{" "}
            {name === "dark" ? "Dark" : "Light"}
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Panels</legend>
        {SWITCHES.map(([name, text]) => (
          <Check key={name} name={name} text={text} />
        ))}
      </fieldset>
      <fieldset>
        <legend>Graph</legend>
        <Check name="labels" text="Labels" />
        <LookSliders />
      </fieldset>
      <button type="button" onClick={resetSettings}>
        As at first
      </button>
    </Dialog>
  );
}

function Check({ name, text }: { name: Switch; text: string }) {
  return (
    <label>
      <input
        type="checkbox"
        checked={settings.value[name]}
        onChange={(event) => updateSettings({ [name]: event.currentTarget.checked })}
      />{" "}
      {text}
    </label>
  );
}
