import AxeBuilder from "@axe-core/playwright";

import { baseUrl, expect, goByKey, submitLogin, test } from "./fixtures";

const PAGES: [path: string, en: string, zh: string][] = [
  ["/r/dev", "Overview", "总览"],
  ["/r/dev/jobs", "Jobs", "作业"],
  ["/r/dev/jobs/settle", "settle", "settle"],
  ["/r/dev/jobs/settle/config", "settle", "settle"],
  ["/r/dev/jobs/settle/explain", "settle", "settle"],
  ["/r/dev/new-job", "New job", "新建作业"],
  ["/r/dev/runs", "Runs", "运行记录"],
  ["/r/dev/history", "History", "历史"],
  ["/r/dev/history/traces", "History", "历史"],
  ["/r/dev/history/failures", "History", "历史"],
  ["/r/dev/history/missed", "History", "历史"],
  ["/r/dev/servers", "Servers", "服务器"],
  ["/r/dev/servers/127.0.0.1", "127.0.0.1", "127.0.0.1"],
  ["/r/dev/instances", "Instances", "实例"],
  ["/r/dev/doctor", "Doctor", "巡检"],
  ["/registries", "Registries", "注册中心"],
  ["/registries/histories", "History stores", "历史库"],
  ["/audit", "Audit", "审计"],
  ["/accounts", "Accounts", "账号管理"],
  ["/account", "My account", "我的账号"],
  ["/help", "Help", "帮助"],
];

/** Covers each pair of language, scheme and width. */
const VARIANTS = [
  ["en", "light", 1280],
  ["zh", "dark", 1280],
  ["en", "dark", 390],
  ["zh", "light", 390],
] as const;

for (const [language, scheme, width] of VARIANTS) {
  test(`every page is accessible: ${language}, ${scheme}, ${width} px`, async ({ root }) => {
    // Axe checks whole pages, which takes long on a busy machine.
    test.setTimeout(600_000);
    await root.setViewportSize({ width, height: 844 });
    await root.evaluate(
      ([language, scheme]) => {
        localStorage.setItem("elasticjob-language", language);
        localStorage.setItem("elasticjob-scheme", scheme);
      },
      [language, scheme] as const,
    );
    const found: Record<string, string[]> = {};
    const runs = await root.request.get(`${baseUrl()}/api/v1/r/dev/runs?job=settle&limit=1`);
    const [run] = ((await runs.json()) as { items: { runId: string }[] }).items;
    const runPage = `/r/dev/runs/${encodeURIComponent(run?.runId ?? "")}`;
    const pages = [...PAGES, [runPage, "Run of settle", "settle 的一次运行"] as const];
    for (const [path, en, zh] of pages) {
      await root.goto(baseUrl() + path);
      const title = language === "en" ? en : zh;
      await expect(root.getByRole("heading", { level: 1, name: title })).toBeVisible();
      await expect(root.getByRole("status")).toHaveCount(0);
      await root.waitForLoadState("load");

      const wider = await root.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(wider, `${path} is wider than the screen`).toBeLessThanOrEqual(0);
      // The pages have no frames, so axe needs no extra page for each run.
      const { violations } = await new AxeBuilder({ page: root }).setLegacyMode().analyze();
      const messages = violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`,
      );
      if (messages.length > 0) found[path] = messages;
    }
    expect(found).toEqual({});
  });
}

/** Dialogs and menus: the page, and the buttons and menu items that open them. */
const OVERLAYS: [path: string, ...press: string[]][] = [
  ["/r/dev/jobs/greet", "Trigger"],
  ["/r/dev/jobs/greet", "Disable"],
  ["/r/dev/jobs/greet", "More"],
  ["/r/dev/jobs/greet", "More", "Shut down"],
  ["/r/dev/jobs/greet", "More", "Remove"],
  ["/r/dev/jobs/greet", "More", "Dump"],
  ["/r/dev/jobs", "Actions for greet"],
  ["/r/dev/jobs", "Actions for greet", "Disable"],
  ["/r/dev/jobs", "Views"],
  ["/r/dev/servers", "Actions for 127.0.0.1"],
  ["/accounts", "Add account"],
  ["/account", "Account root"],
  ["/registries", "Registry –, switch"],
];

for (const scheme of ["light", "dark"] as const) {
  test(`login, dialogs and menus are accessible: ${scheme}`, async ({ page, browserErrors }) => {
    test.setTimeout(300_000);
    expect(browserErrors).toEqual([]);
    await page.addInitScript((scheme) => {
      localStorage.setItem("elasticjob-scheme", scheme);
      localStorage.setItem("elasticjob-language", "en");
    }, scheme);
    const found: Record<string, string[]> = {};
    const check = async (name: string) => {
      // Wait until fade-in animations have finished.
      await page.evaluate(() =>
        Promise.all(
          document
            .getAnimations()
            .filter((each) => each.effect?.getTiming().iterations !== Infinity)
            .map((each) => each.finished.catch(() => undefined)),
        ),
      );
      // A menu is rendered outside the regions of the page.
      const axe = new AxeBuilder({ page }).setLegacyMode().disableRules(["region"]);
      const { violations } = await axe.analyze();
      const messages = violations.map(({ id, nodes }) => {
        const where = nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`);
        return `${id}: ${where.join(" | ")}`;
      });
      if (messages.length > 0) found[name] = messages;
    };
    await page.goto(baseUrl());
    await expect(page.getByRole("button", { name: "Log in" })).toBeVisible();
    await check("login");
    await submitLogin(page, "root", "wrong");
    await expect(page.getByRole("alert")).toBeVisible();
    await check("login refused");
    await submitLogin(page, "root", "root");
    await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();

    for (const [path, first, ...items] of OVERLAYS) {
      await page.goto(baseUrl() + path);
      await page.getByRole("button", { name: first, exact: true }).click();
      for (const item of items) await page.getByRole("menuitem", { name: item }).click();
      await expect(page.getByRole("dialog").or(page.getByRole("menu")).first()).toBeVisible();
      await expect(page.getByRole("status")).toHaveCount(0);
      await check([path, first, ...items].join(" > "));
    }
    expect(found).toEqual({});
  });
}

test("the language is switched, stored and applied to the navigation", async ({ root }) => {
  await root.getByRole("button", { name: "中文" }).click();
  await expect(root.getByRole("heading", { name: "总览" })).toBeVisible();
  await expect(root.locator("html")).toHaveAttribute("lang", "zh-CN");
  for (const name of [
    "总览",
    "作业",
    "历史",
    "服务器",
    "实例",
    "巡检",
    "注册中心",
    "审计",
    "帮助",
  ]) {
    await expect(
      root.getByRole("navigation").getByRole("link", { name, exact: true }),
    ).toBeVisible();
  }

  await root.reload();

  await expect(root.getByRole("heading", { name: "总览" })).toBeVisible();
  await root.getByRole("button", { name: "English" }).click();
  await expect(root.getByRole("heading", { name: "Overview" })).toBeVisible();
});

test("server messages are described in Chinese above the English original", async ({ root }) => {
  await root.getByRole("button", { name: "中文" }).click();
  await root.goto(`${baseUrl()}/r/dev/doctor`);
  await expect(root.getByText("服务器没有发现问题。")).toBeVisible();
  await expect(root.locator('[lang="en"]').filter({ hasText: "ZooKeeper" })).toBeVisible();
  await root.goto(`${baseUrl()}/r/dev/jobs/greet/explain`);
  await expect(root.getByText("它的调度：上次与下次到期的时间。")).toBeVisible();
  await root.getByRole("button", { name: "English" }).click();
  await expect(root.getByText(/was (not )?due at/).first()).toBeVisible();
});

test("the doctor lists equal findings of many jobs once", async ({ root }) => {
  const findings = Array.from({ length: 538 }, (_, number) => ({
    ...{ check: "job", isProblem: true, about: `job-${number}` },
    ...{ message: "the job has no instance", hint: "start one" },
  }));
  await root.route("**/api/v1/r/dev/doctor", (route) => route.fulfill({ json: findings }));

  await root.goto(`${baseUrl()}/r/dev/doctor`);

  const row = root.locator("[data-finding]");
  await expect(row).toHaveCount(1);
  await expect(row).toContainText("538 × job-0, job-1, job-2, job-3, job-4");
  await row.getByRole("button", { name: "533 more" }).click();
  await expect(row).toContainText("job-537: the job has no instance");
});

test("every page has its own title in the browser tab", async ({ root }) => {
  const runs = await root.request.get(`${baseUrl()}/api/v1/r/dev/runs?job=greet&limit=2`);
  const { items } = (await runs.json()) as { items: { runId: string }[] };
  const paths = [
    ...PAGES.map(([path]) => path),
    ...items.map(({ runId }) => `/r/dev/runs/${encodeURIComponent(runId)}`),
  ];
  const titles: Record<string, string> = {};
  for (const path of paths) {
    await root.goto(baseUrl() + path);
    await expect(root.getByRole("heading", { level: 1 })).toBeVisible();
    titles[path] = await root.title();
  }

  const all = Object.values(titles);
  expect(all.filter((title, index) => all.indexOf(title) !== index)).toEqual([]);
  expect(titles["/r/dev/jobs/settle/config"]).toBe("settle · Configuration · dev · ElasticJob");
});

test("dates are ISO in both languages, with the zone named", async ({ root }) => {
  await root.route(/\/api\/v1\/r\/dev\/runs(\?|$)/, async (route) => {
    const response = await route.fetch();
    const page = (await response.json()) as { items: object[] };
    const items = page.items.map((run) => ({ ...run, startedAt: "2026-03-09T23:04:05Z" }));
    await route.fulfill({ response, json: { ...page, items } });
  });
  for (const language of ["en", "zh"]) {
    await root.evaluate((name) => localStorage.setItem("elasticjob-language", name), language);
    await root.goto(`${baseUrl()}/r/dev/runs`);
    const zone = await root.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone);

    await expect(root.locator("[data-run] time").first()).toHaveText(
      /^2026-03-(09|10) \d\d:04:05$/,
    );
    await expect(root.getByRole("navigation")).toContainText(zone);
  }
});

test("on a small screen, no text is under the button of a row", async ({ root }) => {
  await root.setViewportSize({ width: 390, height: 844 });
  await root.goto(`${baseUrl()}/r/dev/history`);
  await expect(root.locator("[data-execution]").first()).toBeVisible();

  const covered = await root.locator("[data-execution]").evaluateAll((rows) =>
    rows.flatMap((row) => {
      const button = row.querySelector("[data-actions]")?.getBoundingClientRect();
      return [...row.querySelectorAll("td:not([data-actions])")]
        .filter((cell) => {
          const box = cell.getBoundingClientRect();
          return button && box.right > button.left && box.top < button.bottom;
        })
        .map((cell) => cell.textContent);
    }),
  );

  expect(covered).toEqual([]);
});

test("unknown jobs, registries and pages are reported", async ({ root }) => {
  await root.goto(`${baseUrl()}/r/dev/jobs/no-such-job`);
  await expect(root.getByRole("alert")).toContainText("Not found");
  await root.goto(`${baseUrl()}/r/elsewhere/jobs`);
  await expect(root.getByRole("alert")).toContainText("Registry elsewhere does not exist");
  await root.goto(`${baseUrl()}/r/dev/jobs/greet/nonsense`);
  await expect(root.getByText("Page not found")).toBeVisible();
  await root.goto(`${baseUrl()}/nowhere`);
  await expect(root.getByText("Page not found")).toBeVisible();
});

test("keyboard shortcuts open pages, the palette and help", async ({ root }) => {
  await expect(root.getByRole("heading", { name: "Overview" })).toBeVisible();
  await goByKey(root, "s", "Servers");

  await root.keyboard.press("Control+k");
  await root.getByRole("combobox").fill("overr");
  await expect(root.getByRole("option", { name: /overrun/ })).toBeVisible();
  await root.keyboard.press("Enter");
  await expect(root.getByRole("heading", { name: "overrun", level: 1 })).toBeVisible();

  await root.keyboard.press("?");
  await expect(root.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
});
