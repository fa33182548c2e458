// What is open of the shell: dialogs, panels, notices. Of the moment only: neither in the address nor remembered.
import { effect, signal } from "@preact/signals";

export type DialogName = "help" | "search" | "settings" | "losses" | "export" | "stop" | "detach" | "kill";
export type PopoverName = "filter" | "highlights" | "look";

export const openDialog = signal<DialogName | null>(null);
export const openPopover = signal<PopoverName | null>(null);

/** A short message that goes away by itself: "copied". */
export const notice = signal<string | null>(null);

const NOTICE_MS = 2500;

export function tell(message: string): void {
  notice.value = message;
}

export function togglePopover(name: PopoverName): void {
  openPopover.value = openPopover.value === name ? null : name;
}

/** Have notices go away. */
export function keepNotices(): void {
  let timer = 0;
  effect(() => {
    clearTimeout(timer);
    if (notice.value !== null) {
      timer = window.setTimeout(() => (notice.value = null), NOTICE_MS);
    }
  });
}
