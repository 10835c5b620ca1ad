import { baseUrl, expect, expectNotification, test } from "./fixtures";

test("a job is disabled and enabled on one server", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/servers`);
  await root.getByRole("link", { name: "127.0.0.1" }).click();
  const row = root.getByRole("row").filter({ has: root.getByRole("link", { name: "load" }) });
  await row.getByRole("button", { name: "Actions for load" }).click();
  await root.getByRole("menuitem", { name: "Disable" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await expectNotification(root, "disabled for 1 job");
  await expect(row).toContainText("disabled");

  await row.getByRole("button", { name: "Actions for load" }).click();
  await root.getByRole("menuitem", { name: "Enable" }).click();
  await expect(row).toContainText("enabled");
});

test("the cron builder shows next runs and errors", async ({ root }) => {
  await root.goto(`${baseUrl()}/help?cron=0+30+8+%3F+*+MON-FRI&zone=Asia/Shanghai`);
  await expect(root.getByText("Next 10 runs")).toBeVisible();
  await expect(root.getByRole("listitem")).toHaveCount(10);
  await expect(root.getByRole("listitem").first()).toContainText("Asia/Shanghai");

  await root.getByLabel("Hour").fill("25");
  await expect(root.getByText("Invalid cron expression")).toBeVisible();
});
