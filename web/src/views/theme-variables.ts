// What the theme says where an element is.

/** Reads variables of CSS by their names: `--text`. */
export function themeVariables(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}

/** What variables say that have these names: of `text` the one called `--text`. */
export function themeColors<Name extends string>(element: Element, names: readonly Name[]): Record<Name, string> {
  const read = themeVariables(element);
  return Object.fromEntries(names.map((name) => [name, read(`--${name}`)])) as Record<Name, string>;
}
