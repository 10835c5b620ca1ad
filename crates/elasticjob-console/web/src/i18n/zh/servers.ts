import type { servers as English } from "../en/servers";

/** 中文：与 en/servers.ts 相同的形状。 */
export const servers: typeof English = {
  servers: {
    about: "实例所在的地址。",
    search: "搜索服务器",
    none: "没有服务器",
    noneAbout: "有实例加入后，其服务器会显示在这里。",
    address: "地址",
    status: "状态",
    instances: "实例",
    jobs: "作业",
    disabledJobs: (count) => `${count} 个已禁用`,
    summary: (instances, jobs) => `${instances} 个实例，${jobs} 个作业`,
    isUp: "在线",
    isEmpty: "无实例",
    isDisabled: "已禁用",
    isPartly: "部分禁用",
    statuses: { ENABLED: "已启用", DISABLED: "已禁用" },
    actionsOf: (name) => `${name} 的操作`,
    jobOn: (job, server) => `${server} 上的 ${job}`,
    actions: { enable: "启用", disable: "禁用", shutdown: "下线", remove: "删除" },
    removeWhenEmpty: "删除（须无实例）",
    titles: {
      disable: (what) => `禁用 ${what}？`,
      shutdown: (what) => `下线 ${what}？`,
      remove: (what) => `删除 ${what}？`,
    },
    consequences: {
      disable: (jobs, instances) => [
        `${jobs} 个作业不再向它分配分片，由其他服务器接手。`,
        `它的 ${instances} 个实例上的当前运行不会被中断。`,
      ],
      shutdown: (jobs, instances) => [
        `${instances} 个实例完成当前运行后退出 ${jobs} 个作业；分片由其他服务器接手。`,
      ],
      remove: (jobs) => [`从 ${jobs} 个作业中移除该地址。有实例从该地址加入时会再次出现。`],
    },
    enabled: (name, jobs) => `${name}：已在 ${jobs} 个作业中启用。`,
    disabled: (name, jobs) => `${name}：已在 ${jobs} 个作业中禁用。`,
    shutDown: (name, jobs) => `${name}：已请求从 ${jobs} 个作业下线。`,
    removed: (name, jobs) => `${name}：已从 ${jobs} 个作业中删除。`,
  },
  instances: {
    about: "当前已连接到注册中心的进程。",
    search: "搜索实例",
    none: "没有实例",
    noneAbout: "启动一个加入此注册中心的程序，它会自动显示在这里。",
    name: "实例",
    server: "服务器",
    language: "语言",
    since: "上线时间",
    jobs: "作业",
    jobCount: (count) => `${count} 个作业`,
  },
};
