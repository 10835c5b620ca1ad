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

/** The English texts; the other catalogues have the same shape. */
export const en = {
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

export type Messages = typeof en;
