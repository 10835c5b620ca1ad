import { baseUrl, callApi, expect, expectNotification, test } from "./fixtures";

test("an open trigger is shown with its shards and withdrawn after confirmation", async ({
  root,
}) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/settle`);
  // Each waits for the run before it, which takes a second, so the last one is pending for a while.
  for (let turn = 1; turn <= 15; turn++) {
    await callApi(root, "POST", "/r/dev/jobs/settle/trigger", { parameter: `turn=${turn};` });
  }

  const row = root.locator("[data-trigger]", { hasText: "turn=15;" });
  await expect(row).toContainText("pending", { timeout: 20_000 });
  await expect(row).toContainText("root");
  await row.getByRole("button", { name: "Withdraw" }).click();
  const dialog = root.getByRole("dialog", { name: "Withdraw this trigger of settle?" });
  await expect(dialog).toContainText("Shards that are running go on.");
  await dialog.getByRole("button", { name: "Withdraw" }).click();

  await expectNotification(root, /settle: trigger withdrawn for \d shards?/);
  await expect(row).toHaveCount(0);
});
