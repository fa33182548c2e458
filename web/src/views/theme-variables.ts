// What the theme says where an element is.

/** Reads variables of CSS by their names: `--text`. */
export function themeVariables(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(name).trim();
}
