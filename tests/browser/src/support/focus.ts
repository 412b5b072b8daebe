// Where the keyboard focus is.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";

export interface Focused {
  tag: string;
  /** Its tag and its text, for messages and to distinguish it from others. */
  told: string;
  /** Its place among all elements of the page. */
  order: number;
  /** Whether it has an outline. */
  outlined: boolean;
  /**
   * Whether it is visible: it has a size, and is within the window, because the browser scrolls to the focused element.
   */
  visible: boolean;
}

/** The focused element. */
export async function focused(page: Page): Promise<Focused> {
  // Waits until what slides in on focus has done so.
  return page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const element = document.activeElement ?? document.body;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const label = element.getAttribute("aria-label") ?? element.getAttribute("name");
    const text = element.matches("select, input") ? label : (label ?? element.textContent);
    return {
      tag: element.tagName.toLowerCase(),
      told: `${element.tagName.toLowerCase()} ${(text ?? "").trim().slice(0, 80)}`.trim(),
      order: [...document.querySelectorAll("*")].indexOf(element),
      outlined: style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0,
      visible: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < window.innerHeight,
    };
  });
}

/** Presses Tab, or Shift+Tab, until that element has the focus. */
export async function tabTo(page: Page, told: string, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  const seen: string[] = [];
  for (let press = 0; press < 100; press += 1) {
    await page.keyboard.press(key);
    const at = await focused(page);
    if (at.told === told) return;
    seen.push(at.told);
  }
  assert.fail(`never at ${told}: ${seen.join(" | ")}`);
}
