import type { help as English } from "../en/help";

/** 服务器的消息只有英文；这里按检查项给出中文说明：[正常, 有问题]。 */
const CHECKS: Record<string, [fine: string, wrong: string]> = {
  server: ["服务器没有发现问题。", "服务器没有应答、没有法定多数，或版本过旧。"],
  access: ["所有节点的访问权限一致。", "节点的访问权限不一致，有的程序可能无法读写。"],
  clock: ["时钟没有发现问题。", "本机与注册中心的时钟相差过大，请用时间服务器校准。"],
  session: [
    "会话的临时节点没有发现问题。",
    "会话的临时节点过多：该会话结束后，ZooKeeper 可能无法重启。",
  ],
  stale: ["没有遗留数据。", "有遗留数据：不再使用的服务器、作业记录或触发请求。"],
  job: ["作业的情况，供参考。", "作业目前无法正常运行。"],
};

/** 中文：与 en/help.ts 相同的形状。 */
export const help: typeof English = {
  doctor: {
    about: "检查注册中心及其数据中的常见问题。",
    noProblems: "未发现问题",
    problems: (count) => `${count} 个问题`,
    runAgain: "重新检查",
    describe: (check, isProblem, message) => CHECKS[check]?.[isProblem ? 1 : 0] ?? message,
    checks: {
      server: "服务器",
      access: "访问权限",
      clock: "时钟",
      session: "会话",
      stale: "遗留数据",
      job: "作业",
    },
  },
  help: {
    about: "Cron、术语和快捷键。",
    cron: "Cron 表达式",
    presets: {
      everyMinute: "每分钟",
      everyFive: "每 5 分钟",
      hourly: "每小时",
      nightly: "每天 3 点",
      workdays: "工作日 8:30",
      monthEnd: "每月最后一天",
    },
    expression: "表达式",
    zone: "时区",
    fields: {
      second: "秒",
      minute: "分",
      hour: "时",
      day: "日",
      month: "月",
      weekday: "周",
      year: "年",
    },
    ranges: {
      second: "0–59",
      minute: "0–59",
      hour: "0–23",
      day: "1–31 L W ?",
      month: "1–12 JAN",
      weekday: "1–7 SUN ?",
      year: "可省略",
    },
    syntax:
      "* 每个 · a,b 多个 · a-b 范围 · a/n 从 a 起每 n · L 最后 · W 最近的工作日 · MON#2 第二个周一 · ? 不指定",
    invalid: "无效的 cron 表达式",
    nextTen: "接下来 10 次运行",
    statuses: "状态的含义",
    statusAbout: {
      OK: "有实例在线，分片已分配；按计划运行。",
      DISABLED: "作业已在每台服务器上或在配置中禁用。",
      SHARDING_FLAG: "下次触发时将重新分片。",
      CRASHED: "没有实例在线，作业不会运行。",
    },
    glossaryTitle: "术语",
    glossary: [
      ["分片", "：作业的 N 个部分之一，同一时刻只由一个实例运行。"],
      ["实例", "：加入注册中心的进程；一台服务器可以有多个。"],
      ["失效转移", "：宕机实例上正在运行的分片立即由其他实例运行。"],
      ["错过补偿", "：到期时上次运行尚未结束；结束后立即补偿运行一次。"],
      ["触发", "：请求立即运行一次，不影响调度计划。"],
    ],
    more: "更多",
    keys: "快捷键：按",
    api: "API 文档",
  },
};
