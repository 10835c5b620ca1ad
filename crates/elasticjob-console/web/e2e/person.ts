import { test as base, expect, type Page } from "@playwright/test";

export const home = () => process.env.CONSOLE_URL ?? "";

interface Person {
  /** Somebody who is logged in as root, at the overview. */
  root: Page;
  /** What the browser complained about. */
  complaints: string[];
}

/** A page that must not complain: no error, nothing that the Content-Security-Policy turned away. */
export const test = base.extend<Person>({
  complaints: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !isExpected(message.text()))
        complaints.push(message.text());
    });
    await use(complaints);
    expect(complaints).toEqual([]);
  },
  root: async ({ page, complaints }, use) => {
    expect(complaints).toEqual([]);
    await logIn(page, "root", "root");
    await use(page);
  },
});

export { expect };

/** What is refused on purpose: the browser reports every status of 400 and above. */
const isExpected = (text: string) =>
  /the server responded with a status of (401|403|404|409|412|422|429)/.test(text);

export async function logIn(page: Page, username: string, password: string, path = "/") {
  await page.goto(home() + path);
  await fillIn(page, username, password);
  await expect(page.getByRole("button", { name: `Account ${username}` })).toBeVisible();
}

export async function fillIn(page: Page, username: string, password: string) {
  await page.getByLabel("User name").fill(username);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** What is said in the corner. */
export const said = (page: Page, text: string | RegExp) =>
  expect(page.getByRole("alert").filter({ hasText: text }).first()).toBeVisible();

/** g and a letter, soon after each other: on a busy machine they may be too far apart, and are pressed again. */
export const goByKey = (page: Page, key: string, heading: string) =>
  expect(async () => {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await expect(page.getByRole("heading", { name: heading, level: 1 })).toBeVisible({
      timeout: 5_000,
    });
  }).toPass({ timeout: 45_000 });

/** What somebody does beside the page, as a program would, with the session of this one. */
export async function send(
  page: Page,
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  data = {},
) {
  const session = await page.request.get(`${home()}/api/v1/session`);
  const { csrfToken } = (await session.json()) as { csrfToken: string };
  const answer = await page.request.fetch(`${home()}/api/v1${path}`, {
    method,
    data,
    headers: { "X-CSRF-Token": csrfToken, ...(method === "PATCH" && { "If-Match": "*" }) },
  });
  expect(answer.ok(), `${method} ${path}: ${await answer.text()}`).toBe(true);
}

/** A page that looks at nothing by itself from now on, however long one waits: what it shows, it was told. */
export const withoutPolls = (page: Page) =>
  page.addInitScript(() => {
    const real = window.setInterval.bind(window);
    const still = (act: TimerHandler, every?: number, ...rest: unknown[]) =>
      (every ?? 0) > 1_000 ? 0 : real(act, every, ...rest);
    window.setInterval = still as typeof window.setInterval;
  });
