import { defineConfig } from "@playwright/test";

/** The real binary, a demonstration of its own, and Debian's Chromium. */
export default defineConfig({
  testDir: "e2e",
  // One cluster for all: what one test switches off, another would miss.
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
