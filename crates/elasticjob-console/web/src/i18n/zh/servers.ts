import type { servers as English } from "../en/servers";

/** 中文：与 en/servers.ts 相同的形状。 */
export const servers: typeof English = {
  servers: {
    about: "实例所在的机器，按地址排列。",
    search: "搜索服务器",
    none: "没有服务器",
    noneAbout: "有实例加入后，其服务器就会出现在这里。",
    address: "地址",
    status: "状态",
    instances: "实例",
    jobs: "作业",
    disabledJobs: (count) => `${count} 个已禁用`,
    has: (instances, jobs) => `${instances} 个实例，${jobs} 个作业`,
    isUp: "在线",
    isGone: "无实例",
    isDisabled: "已禁用",
    isPartly: "部分禁用",
    statuses: { ENABLED: "已启用", DISABLED: "已禁用" },
    actionsOf: (name) => `${name} 的操作`,
    jobOn: (job, server) => `${server} 上的 ${job}`,
    acts: { enable: "启用", disable: "禁用", shutdown: "终止", remove: "删除" },
    removeLater: "删除（须无实例）",
    titles: {
      disable: (what) => `禁用 ${what}？`,
      shutdown: (what) => `终止 ${what}？`,
      remove: (what) => `删除 ${what}？`,
    },
    happens: {
      disable: (jobs, instances) => [
        `${jobs} 个作业不再向它分配分片，由其他服务器接手。`,
        `它的 ${instances} 个实例正在运行的任务不会被中断。`,
      ],
      shutdown: (jobs, instances) => [
        `${instances} 个实例运行完当前任务后退出 ${jobs} 个作业；其他服务器接手分片。`,
      ],
      remove: (jobs) => [`从 ${jobs} 个作业中忘记该地址。有实例从该地址加入时会再次出现。`],
    },
    enabled: (name, jobs) => `${name}：已在 ${jobs} 个作业中启用。`,
    disabled: (name, jobs) => `${name}：已在 ${jobs} 个作业中禁用。`,
    shutDown: (name, jobs) => `${name}：已通知退出 ${jobs} 个作业。`,
    removed: (name, jobs) => `${name}：已从 ${jobs} 个作业中删除。`,
  },
  instances: {
    about: "当前在线的程序，每个都有自己的标识。",
    search: "搜索实例",
    none: "没有实例",
    noneAbout: "启动一个加入此注册中心的程序，它会自动出现。",
    name: "实例",
    server: "服务器",
    language: "语言",
    since: "在线时间",
    jobs: "作业",
    jobCount: (count) => `${count} 个作业`,
  },
};
