import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { JobDetails } from "../../../api/types";
import { useTo } from "../../../app/registry";
import { useText } from "../../../i18n";
import { InstanceName } from "../../../parts/InstanceName";
import { When } from "../../../parts/When";
import classes from "./Facts.module.css";

/** What kind of job it is, and what is promised about it, in words. */
export function Facts({ job }: { job: JobDetails }) {
  const t = useText();
  const to = useTo();
  const properties = job.config.properties ?? {};
  const props = properties.props ?? {};
  const attempts = Number(props["elasticjob.retry.max.attempts"] ?? "1");
  const catchUp = props["elasticjob.catch.up"] ?? "none";
  const leaseLoss = props["elasticjob.on.lease.loss"] ?? "cancel";
  // What says nothing was scheduled by Java.
  const clocks = props["elasticjob.dst"] ?? "quartz";
  const isJavas =
    job.instanceList.length > 0 && job.instanceList.every(({ language }) => language === "java");
  return (
    <dl className={classes.facts}>
      <Fact name={t.facts.runsWith}>
        {job.handler.class ?? job.handler.handler ?? t.handlers[job.handler.kind]}
      </Fact>
      <Fact name={t.facts.leader}>
        {job.leader ? <InstanceName id={job.leader} known={job.instanceList} /> : t.facts.nobody}
      </Fact>
      <Fact name={t.facts.servers}>
        {job.servers.length === 0
          ? "–"
          : job.servers.map((server, index) => (
              <span key={server.serverIp}>
                {index > 0 && ", "}
                <Link to={to("servers", server.serverIp)}>{server.serverIp}</Link>
                {server.status === "DISABLED" && ` (${t.jobStatus.DISABLED})`}
              </span>
            ))}
      </Fact>
      <Fact name={t.facts.ifNodeDies}>
        {properties.failover ? t.facts.takenOver : t.facts.nextFire}
      </Fact>
      <Fact name={t.facts.ifLate}>{properties.misfire ? t.facts.oncemore : t.facts.skipped}</Fact>
      <Fact name={t.facts.ifFails}>
        {attempts > 1 ? t.facts.attempts(attempts) : t.facts.noRetry}
      </Fact>
      {/* Java holds no lease, and catches up with nothing. */}
      {!isJavas && (
        <Fact name={t.facts.ifLeaseIsLost}>{t.facts.leaseLoss[leaseLoss] ?? leaseLoss}</Fact>
      )}
      {!isJavas && properties.cron && (
        <Fact name={t.facts.ifNobodyWasThere}>{t.facts.catchUp(catchUp)}</Fact>
      )}
      {properties.cron && (
        <Fact name={t.facts.whenClocksChange}>{t.facts.clocks[clocks] ?? clocks}</Fact>
      )}
      <Fact name={t.facts.timeout}>{props["elasticjob.timeout"] ?? t.facts.noTimeout}</Fact>
      <Fact name={t.facts.config}>
        {t.facts.version(job.config.version)} · <When at={job.config.writtenAt} />
      </Fact>
      {job.reshardingSince && (
        <Fact name={t.facts.resharding}>
          <When at={job.reshardingSince} isRelative />
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <Text component="dt" size="xs" c="dimmed">
        {name}
      </Text>
      <Text component="dd" size="sm" m={0} className="wrap">
        {children}
      </Text>
    </div>
  );
}
