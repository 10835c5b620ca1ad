import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { JobDetails } from "../../../api/types";
import { useRegistryLink } from "../../../app/registry";
import { InstanceName } from "../../../components/InstanceName";
import { Timestamp } from "../../../components/Timestamp";
import { useText } from "../../../i18n";
import classes from "./JobSettings.module.css";

/** What kind of job it is, and what is promised about it, in words. */
export function JobSettings({ job }: { job: JobDetails }) {
  const t = useText();
  const to = useRegistryLink();
  const properties = job.config.properties ?? {};
  const props = properties.props ?? {};
  const attempts = Number(props["elasticjob.retry.max.attempts"] ?? "1");
  const catchUp = props["elasticjob.catch.up"] ?? "none";
  const leaseLoss = props["elasticjob.on.lease.loss"] ?? "cancel";
  // What says nothing was scheduled by Java.
  const dstRule = props["elasticjob.dst"] ?? "quartz";
  const isJavaOnly =
    job.instanceList.length > 0 && job.instanceList.every(({ language }) => language === "java");
  return (
    <dl className={classes.facts}>
      <Setting name={t.facts.runsWith}>
        {job.handler.class ?? job.handler.handler ?? t.handlers[job.handler.kind]}
      </Setting>
      <Setting name={t.facts.leader}>
        {job.leader ? <InstanceName id={job.leader} known={job.instanceList} /> : t.facts.nobody}
      </Setting>
      <Setting name={t.facts.servers}>
        {job.servers.length === 0
          ? "–"
          : job.servers.map((server, index) => (
              <span key={server.serverIp}>
                {index > 0 && ", "}
                <Link to={to("servers", server.serverIp)}>{server.serverIp}</Link>
                {server.status === "DISABLED" && ` (${t.jobStatus.DISABLED})`}
              </span>
            ))}
      </Setting>
      <Setting name={t.facts.ifNodeDies}>
        {properties.failover ? t.facts.takenOver : t.facts.nextFire}
      </Setting>
      <Setting name={t.facts.ifLate}>
        {properties.misfire ? t.facts.oncemore : t.facts.skipped}
      </Setting>
      <Setting name={t.facts.ifFails}>
        {attempts > 1 ? t.facts.attempts(attempts) : t.facts.noRetry}
      </Setting>
      {/* Java holds no lease, and catches up with nothing. */}
      {!isJavaOnly && (
        <Setting name={t.facts.ifLeaseIsLost}>{t.facts.leaseLoss[leaseLoss] ?? leaseLoss}</Setting>
      )}
      {!isJavaOnly && properties.cron && (
        <Setting name={t.facts.ifNobodyWasThere}>{t.facts.catchUp(catchUp)}</Setting>
      )}
      {properties.cron && (
        <Setting name={t.facts.whenClocksChange}>{t.facts.clocks[dstRule] ?? dstRule}</Setting>
      )}
      <Setting name={t.facts.timeout}>{props["elasticjob.timeout"] ?? t.facts.noTimeout}</Setting>
      <Setting name={t.facts.config}>
        {t.facts.version(job.config.version)} · <Timestamp at={job.config.writtenAt} />
      </Setting>
      {job.reshardingSince && (
        <Setting name={t.facts.resharding}>
          <Timestamp at={job.reshardingSince} isRelative />
        </Setting>
      )}
    </dl>
  );
}

function Setting({ name, children }: { name: string; children: ReactNode }) {
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
