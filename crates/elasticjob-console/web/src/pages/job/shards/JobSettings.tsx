import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { JobDetails } from "../../../api/types";
import { useRegistryLink } from "../../../app/registry";
import { InstanceName } from "../../../components/InstanceName";
import { Timestamp } from "../../../components/Timestamp";
import { useText } from "../../../i18n";
import classes from "./JobSettings.module.css";

/** Type, leader, servers and policies of a job. */
export function JobSettings({ job }: { job: JobDetails }) {
  const t = useText();
  const to = useRegistryLink();
  const properties = job.config.properties ?? {};
  const props = properties.props ?? {};
  const attempts = Number(props["elasticjob.retry.max.attempts"] ?? "1");
  const catchUp = props["elasticjob.catch.up"] ?? "none";
  const leaseLoss = props["elasticjob.on.lease.loss"] ?? "cancel";
  // A job without this property was stored by Java, which follows Quartz.
  const dstRule = props["elasticjob.dst"] ?? "quartz";
  const isJavaOnly =
    job.instanceList.length > 0 && job.instanceList.every(({ language }) => language === "java");
  return (
    <dl className={classes.facts}>
      <Setting name={t.settings.type}>
        {job.handler.class ?? job.handler.handler ?? t.handlers[job.handler.kind]}
      </Setting>
      <Setting name={t.settings.leader}>
        {job.leader ? (
          <InstanceName id={job.leader} known={job.instanceList} />
        ) : (
          t.settings.noLeader
        )}
      </Setting>
      <Setting name={t.settings.servers}>
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
      <Setting name={t.settings.onInstanceFailure}>
        {properties.failover ? t.settings.takenOver : t.settings.nextFire}
      </Setting>
      <Setting name={t.settings.onMisfire}>
        {properties.misfire ? t.settings.compensated : t.settings.skipped}
      </Setting>
      <Setting name={t.settings.onShardFailure}>
        {attempts > 1 ? t.settings.attempts(attempts) : t.settings.noRetry}
      </Setting>
      {/* Java ElasticJob has neither leases nor catch-up. */}
      {!isJavaOnly && (
        <Setting name={t.settings.onLeaseLoss}>
          {t.settings.leaseLoss[leaseLoss] ?? leaseLoss}
        </Setting>
      )}
      {!isJavaOnly && properties.cron && (
        <Setting name={t.settings.catchUpPolicy}>{t.settings.catchUp(catchUp)}</Setting>
      )}
      {properties.cron && (
        <Setting name={t.settings.dst}>{t.settings.dstRules[dstRule] ?? dstRule}</Setting>
      )}
      <Setting name={t.settings.timeout}>
        {props["elasticjob.timeout"] ?? t.settings.noTimeout}
      </Setting>
      <Setting name={t.settings.config}>
        {t.settings.version(job.config.version)} · <Timestamp at={job.config.writtenAt} />
      </Setting>
      {job.reshardingSince && (
        <Setting name={t.settings.resharding}>
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
