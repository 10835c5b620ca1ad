import { expect, home, test } from "./person";

/** Where to: `npm run screenshots` puts them beside the documentation. */
const FOLDER = process.env.SCREENSHOTS;

const PAGES: [name: string, path: string][] = [
  ["overview", "/r/dev"],
  ["jobs", "/r/dev/jobs"],
  ["job", "/r/dev/jobs/settle"],
  ["configuration", "/r/dev/jobs/greet/config"],
  ["explain", "/r/dev/jobs/settle/explain"],
  ["servers", "/r/dev/servers/127.0.0.1"],
  ["instances", "/r/dev/instances"],
  ["doctor", "/r/dev/doctor"],
  ["audit", "/audit"],
  ["accounts", "/accounts"],
  ["account", "/account"],
  ["registries", "/registries"],
  ["help", "/help"],
];

for (const language of ["en", "zh"] as const) {
  test(`pictures of every page: ${language}`, async ({ root }) => {
    test.skip(!FOLDER, "only on request: npm run screenshots");
    test.setTimeout(180_000);
    await root.evaluate((kept) => localStorage.setItem("elasticjob-language", kept), language);
    for (const [name, path] of PAGES) {
      await root.goto(home() + path);
      await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(root.getByRole("status")).toHaveCount(0);
      await root.waitForLoadState("load");
      await root.screenshot({ path: `${FOLDER}/${name}.${language}.png`, animations: "disabled" });
    }
    await root.setViewportSize({ width: 390, height: 844 });
    await root.emulateMedia({ colorScheme: "dark" });
    for (const [name, path] of PAGES.slice(0, 3)) {
      await root.goto(home() + path);
      await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(root.getByRole("status")).toHaveCount(0);
      await root.waitForLoadState("load");
      await root.screenshot({
        path: `${FOLDER}/${name}.narrow.${language}.png`,
        animations: "disabled",
      });
    }
  });
}
