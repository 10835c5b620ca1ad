import type { overview as English } from "../en/overview";

/** 服务器的消息只有英文；这里按类别给出中文说明，页面在其下方显示原文。 */
const INCIDENTS: Record<string, string> = {
  unreadable: "无法读取它的配置，实例沿用最后一次读到的配置。",
  crashed: "没有实例在线，作业不会运行。",
  ownerGone: "有分片属于已经离线的实例。",
  shardingFlag: "分片尚未分配。",
  awaitingFailover: "运行中的实例已离线，有分片等待被接管。",
  stuck: "有分片运行过久，一直没有结束。",
  drift: "已分配的分片数与配置的不一致。",
  misfired: "有分片在运行期间再次到期，等待错过补偿。",
  missed: "有触发漏跑。",
};

/** 中文：与 en/overview.ts 相同的形状。 */
export const overview: typeof English = {
  overview: {
    isLive: "实时",
    asOf: "无法连接注册中心；以下数据截至",
    forecast: "调度计划",
    forecastEmpty: "这段时间没有触发。",
    forecastSummary: (total, hours, isEstimated) =>
      `${hours} 小时内触发${isEstimated ? "约" : ""} ${total.toLocaleString("zh")} 次`,
    forecastPeak: (most, at) => `；最密集的时段从 ${at} 开始：${most.toLocaleString("zh")} 次`,
    forecastCell: (at, count) => `${at}：${count.toLocaleString("zh")} 次`,
    forecastRange: "时间范围",
    hours: (count) => `${count} 小时`,
    recentRuns: "最近运行",
    range: "时间范围",
    ranges: { "1h": "1 小时", "6h": "6 小时", "24h": "24 小时", "7d": "7 天" },
    inRange: (range) => `最近 ${range}`,
    outcomes: "运行结果",
    outcomesSummary: (of) =>
      `共运行 ${(of.done + of.incomplete + of.failed + of.cancelled + of.running).toLocaleString("zh")} 次：成功 ${of.done}，不完整 ${of.incomplete}，失败 ${of.failed}，取消 ${of.cancelled}，运行中 ${of.running}`,
    startDelay: "最大开始延迟",
    startDelaySummary: (most, at) => `最大开始延迟 ${most}，时段自 ${at} 开始`,
    onTime: "准时",
    late: "延迟",
    lateAbout: (seconds, since) => `${since}内，比计划时间晚 ${seconds} 秒以上才开始的运行`,
    ofRuns: (runs, since) => `${since}内共运行 ${runs.toLocaleString("zh")} 次`,
    incompleteAbout: (since) => `${since}内缺少分片的运行`,
    missedAbout: (since, coalesced) =>
      `${since}内漏跑的触发${coalesced > 0 ? `；另有 ${coalesced.toLocaleString("zh")} 次由之后的运行一并处理` : ""}`,
    notRecorded: "未记录",
    missedNotRecorded: "此注册中心没有历史库，漏跑不会被记录。",
    noRuns: "这段时间没有运行",
    noRunsAbout: "新的运行会自动显示在这里。",
    historyDown: "历史库没有响应：",
    incidents: "需要关注",
    noIncidents: "未发现问题",
    noIncidentsAbout: "所有作业都有实例，没有等待失效转移的分片，所有配置均可读取。",
    next: "接下来的运行",
    noneDue: "没有即将触发的作业",
    explain: "运行诊断",
    more: (count) => `还有 ${count} 个`,
    truncated: (count, total) =>
      `共 ${total.toLocaleString("zh")} 个问题，显示最严重的 ${count} 个。`,
    describe: (kind, message) => INCIDENTS[kind] ?? message,
    kinds: {
      unreadable: "无法读取",
      crashed: "无实例",
      ownerGone: "所属实例离线",
      shardingFlag: "待分片",
      awaitingFailover: "等待失效转移",
      stuck: "卡住",
      drift: "分片数不一致",
      misfired: "等待错过补偿",
      missed: "漏跑",
    },
    tiles: {
      due: "一小时内触发",
      late: "延迟",
      failed: "失败",
      incomplete: "不完整",
      missed: "漏跑",
      jobs: "作业",
      running: "运行中的分片",
      waiting: "等待失效转移",
      misfired: "等待错过补偿",
      crashed: "无实例",
      disabled: "已禁用",
      unreadable: "无法读取",
      shards: "分片",
      instances: "实例",
      servers: "服务器",
    },
  },
  charts: {
    asTable: "以表格显示",
    asChart: "以图表显示",
    tableOf: (title) => `${title}：表格`,
    from: "起始时间",
    started: "开始时间",
    outcomes: {
      done: "成功",
      incomplete: "不完整",
      failed: "失败",
      cancelled: "取消",
      running: "运行中",
    },
    counts: (of) =>
      [
        `成功 ${of.done.toLocaleString("zh")}`,
        of.incomplete > 0 && `不完整 ${of.incomplete.toLocaleString("zh")}`,
        `失败 ${of.failed.toLocaleString("zh")}`,
        of.cancelled > 0 && `取消 ${of.cancelled.toLocaleString("zh")}`,
        of.running > 0 && `运行中 ${of.running.toLocaleString("zh")}`,
      ]
        .filter(Boolean)
        .join("，"),
  },
};
