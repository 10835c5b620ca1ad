import { test as base, expect, type Page } from "@playwright/test";

export const baseUrl = () => process.env.CONSOLE_URL ?? "";

interface Fixtures {
  /** A page logged in as root, at the overview. */
  root: Page;
  /** Page errors and console errors. */
  browserErrors: string[];
}

/** Fails a test if the page reports an error, including violations of the Content-Security-Policy. */
export const test = base.extend<Fixtures>({
  browserErrors: async ({ page }, use) => {
    const browserErrors: string[] = [];
    page.on("pageerror", (error) => browserErrors.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !isExpected(message.text()))
        browserErrors.push(message.text());
    });
    await use(browserErrors);
    expect(browserErrors).toEqual([]);
  },
  root: async ({ page, browserErrors }, use) => {
    expect(browserErrors).toEqual([]);
    await logIn(page, "root", "root");
    await use(page);
    // A live page may be in the middle of a request that the test rewrites; its answer goes with the page.
    await page.unrouteAll({ behavior: "ignoreErrors" });
  },
});

export { expect };

/** Rejected requests that tests cause on purpose; the browser logs every status of 400 and above. */
const isExpected = (text: string) =>
  /the server responded with a status of (401|403|404|409|412|422|429)/.test(text);

export async function logIn(page: Page, username: string, password: string, path = "/") {
  await page.goto(baseUrl() + path);
  await submitLogin(page, username, password);
  await expect(page.getByRole("button", { name: `Account ${username}` })).toBeVisible();
}

export async function submitLogin(page: Page, username: string, password: string) {
  await page.getByLabel("User name").fill(username);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

export const expectNotification = (page: Page, text: string | RegExp) =>
  expect(page.getByRole("alert").filter({ hasText: text }).first()).toBeVisible();

/** Presses g and a letter. On a busy machine the keys may be too far apart, so it retries. */
export const goByKey = (page: Page, key: string, heading: string) =>
  expect(async () => {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await expect(page.getByRole("heading", { name: heading, level: 1 })).toBeVisible({
      timeout: 5_000,
    });
  }).toPass({ timeout: 45_000 });

/** Sends a change to the API with the session of the page. */
export async function callApi(
  page: Page,
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  data = {},
) {
  const session = await page.request.get(`${baseUrl()}/api/v1/session`);
  const { csrfToken } = (await session.json()) as { csrfToken: string };
  const response = await page.request.fetch(`${baseUrl()}/api/v1${path}`, {
    method,
    data,
    headers: { "X-CSRF-Token": csrfToken, ...(method === "PATCH" && { "If-Match": "*" }) },
  });
  expect(response.ok(), `${method} ${path}: ${await response.text()}`).toBe(true);
}

/** Disables polling, so that the page updates only through events. */
export const disablePolling = (page: Page) =>
  page.addInitScript(() => {
    const real = window.setInterval.bind(window);
    const still = (act: TimerHandler, every?: number, ...rest: unknown[]) =>
      (every ?? 0) > 1_000 ? 0 : real(act, every, ...rest);
    window.setInterval = still as typeof window.setInterval;
  });
