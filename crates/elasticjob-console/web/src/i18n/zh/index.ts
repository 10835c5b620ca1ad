import type { Messages } from "../en";
import { accounts } from "./accounts";
import { common } from "./common";
import { config } from "./config";
import { help } from "./help";
import { job } from "./job";
import { jobs } from "./jobs";
import { overview } from "./overview";
import { registries } from "./registries";
import { runs } from "./runs";
import { servers } from "./servers";
import { shell } from "./shell";

/** 全部中文文案；形状与英文相同。 */
export const zh: Messages = {
  ...common,
  ...shell,
  ...overview,
  ...jobs,
  ...job,
  ...config,
  ...runs,
  ...servers,
  ...registries,
  ...accounts,
  ...help,
};
