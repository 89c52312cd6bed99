"""Parameters of slurm.conf in Slurm 25.11.8, by what a line is of, with the kind of their value.

Written by scripts/upkeep/slurm_parameters.py from src/common/read_config.c
(https://github.com/SchedMD/slurm); https://slurm.schedmd.com/slurm.conf.html describes them.
"""

from collections.abc import Mapping

VERSION = "25.11.8"


def _by_name(**kinds: str) -> Mapping[str, str]:
    return {name: kind for kind, names in kinds.items() for name in names.split()}


CLUSTER = _by_name(
    boolean="""
        AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM
    """,
    text="""
        AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
        AccountingStorageHost AccountingStorageParameters AccountingStoragePass AccountingStorageTRES
        AccountingStorageType AccountingStorageUser AccountingStoreFlags AcctGatherEnergyType
        AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherProfileType
        AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr BackupController BcastExclude
        BcastParameters BurstBufferParameters BurstBufferType CertgenParameters CertgenType CertmgrParameters
        CertmgrType CliFilterParameters CliFilterPlugins ClusterName CommunicationParameters ControlAddr
        ControlMachine CoreSpecPlugin CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters
        DebugFlags DependencyParameters DownNodes EnforcePartLimits Epilog EpilogSlurmctld ExtSensorsType
        FederationParameters GpuFreqDef GresTypes HashPlugin HealthCheckNodeState HealthCheckProgram
        HttpParserType InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType
        JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompType JobCompUser
        JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobSubmitPlugins
        LaunchParameters LaunchType Licenses LogTimeFormat MailDomain MailProg MCSParameters MCSPlugin
        MetricsType MpiDefault MpiParams NamespaceType NodeFeaturesPlugins NodeName NodeSet PartitionName
        PluginDir PlugStackConfig PowerParameters PowerPlugin PreemptExemptTime PreemptMode PreemptParameters
        PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife PriorityFlags
        PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType
        PriorityUsageResetPeriod PriorityWeightTRES PrivateData ProctrackType Prolog PrologFlags
        PrologSlurmctld PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags
        RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResvEpilog ResvProlog RoutePlugin
        SbcastParameters SchedulerParameters SchedulerType ScronParameters SelectType SelectTypeParameters
        SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
        SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmdDebug
        SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdSpoolDir SlurmdSyslogDebug SlurmdUser
        SlurmSchedLogFile SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes
        SuspendExcParts SuspendExcStates SuspendProgram SuspendTime SwitchParameters SwitchType TaskEpilog
        TaskPlugin TaskPluginParam TaskProlog TLSParameters TLSType TmpFS TopologyParam TopologyPlugin
        UnkillableStepProgram UrlParserType X11Parameters
    """,
    uint16="""
        AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout EpilogTimeout
        ExtSensorsFreq FairShareDampeningFactor GetEnvTimeout GroupUpdateForce GroupUpdateTime
        HealthCheckInterval InactiveLimit JobFileAppend JobRequeue KillOnBadExit KillWait MaxTasksPerNode
        MessageTimeout OverTimeLimit PrologEpilogTimeout PrologTimeout PropagatePrioProcess ResumeRate
        ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice SlurmctldTimeout SlurmdTimeout
        SlurmSchedLogLevel SuspendRate SuspendTimeout TCPTimeout TreeWidth UnkillableStepTimeout VSizeFactor
        WaitTime
    """,
    uint32="""
        EpilogMsgTime FirstJobId JobCompPort KeepAliveTime MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount
        MaxJobId MaxNodeCount MaxStepCount MinJobAge PriorityWeightAge PriorityWeightAssoc
        PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS SlurmdPort
    """,
    uint64="""
        DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode
    """,
)

NODE = _by_name(
    text="""
        BcastAddr CpuBind CPUSpecList Feature Features Gres GresConf NodeAddr NodeHostname Parameters Port
        Reason State Topology TRESWeights
    """,
    uint16="""
        Boards CoreSpecCount CoresPerSocket CPUs Procs RestrictedCoresPerGPU Sockets SocketsPerBoard
        ThreadsPerCore
    """,
    uint32="""
        TmpDisk Weight
    """,
    uint64="""
        MemSpecLimit RealMemory
    """,
)

PARTITION = _by_name(
    boolean="""
        Default DisableRootJobs ExclusiveTopo ExclusiveUser Hidden LLN PowerDownOnIdle ReqResv RootOnly
    """,
    text="""
        AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefaultTime DenyAccounts DenyQos
        MaxTime Nodes OverSubscribe OverTimeLimit PreemptMode QOS SelectTypeParameters Shared State
        SuspendTime Topology TRESBillingWeights
    """,
    uint16="""
        Priority PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout
    """,
    uint32="""
        GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxNodes MinNodes
    """,
    uint64="""
        DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode
    """,
)

NODE_SET = _by_name(
    text="""
        Feature Nodes
    """,
)

DOWN_NODES = _by_name(
    text="""
        Reason State
    """,
)
