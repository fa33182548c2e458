// A button that is pressed in or not: one of several choices, or a thing that is on or off.

export function ToggleButton({
  text,
  title,
  isOn,
  onToggle,
}: {
  text: string;
  title: string;
  isOn: boolean;
  onToggle: () => void;
}) {
  return (
    <button type="button" aria-pressed={isOn} title={title} onClick={onToggle}>
      {text}
    </button>
  );
}
