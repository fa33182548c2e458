// What a reader likes: the theme, which panels there are, labels and edges of the graph.
import { resetSettings, type Settings, settings, updateSettings } from "../../model/settings.ts";
import { Dialog, DialogHead } from "./dialog.tsx";

type Switch = { [K in keyof Settings]: Settings[K] extends boolean ? K : never }[keyof Settings];

const SWITCHES: [Switch, string][] = [
  ["showsFunctions", "Table of functions"],
  ["showsDetails", "Details"],
  ["showsTimeline", "Timeline"],
];

export function SettingsDialog() {
  const { theme, edgeOpacity } = settings.value;
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
        <label class="slider">
          Edges
          <input
            type="range"
            min="0"
            max="2"
            step="0.05"
            aria-label="Opacity of edges"
            aria-valuetext={`${Math.round(edgeOpacity * 100)} %`}
            value={edgeOpacity}
            onInput={(event) => updateSettings({ edgeOpacity: Number(event.currentTarget.value) })}
          />
          <output>{Math.round(edgeOpacity * 100)} %</output>
        </label>
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
