import { defineConfig } from "@playwright/test";

/** Browser tests with the real binary, its own demo and Debian's Chromium. */
export default defineConfig({
  testDir: "e2e",
  // All tests share one cluster, so they must not run in parallel.
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  globalSetup: "./e2e/consoleProcess.ts",
  reporter: [["list"]],
  use: {
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox"],
    },
  },
});
