package cann

import "strings"

// optional are functions of runtime and base that gotrain can do without.
const optional = " " +
	"aclrtGetRunMode aclrtSynchronizeDevice aclrtSynchronizeDeviceWithTimeout aclrtQueryDeviceStatus aclrtGetDeviceUtilizationRate " +
	"aclGetDeviceCapability aclrtSetSysParamOpt aclrtGetSysParamOpt aclrtCtxGetSysParamOpt aclrtGetDeviceSatMode aclrtGetOverflowStatus " +
	"aclrtResetOverflowStatus aclrtDeviceCanAccessPeer aclrtDeviceEnablePeerAccess aclrtCreateContext aclrtDestroyContext aclrtSetCurrentContext " +
	"aclrtCreateStream aclrtDestroyStream aclrtSynchronizeStream aclrtStreamQuery aclrtStreamAbort aclrtSetOpWaitTimeout aclrtSetOpExecuteTimeOut " +
	"aclrtCreateEventWithFlag aclrtSynchronizeEvent aclrtSynchronizeEventWithTimeout aclrtEventElapsedTime aclrtMemcpy aclrtMemset " +
	"aclrtLaunchCallback aclrtSubscribeReport aclrtUnSubscribeReport aclrtProcessReport aclrtPeekAtLastError aclrtGetLastError aclDataTypeSize " +
	"aclmdlRICaptureBegin aclmdlRICaptureEnd aclmdlRIExecuteAsync aclmdlRIDestroy aclFinalize aclrtGetVersion aclrtGetDevice aclCreateScalarList " +
	"aclDestroyScalarList aclSetInputTensorAddr aclSetOutputTensorAddr aclSetTensorAddr aclSetDynamicInputTensorAddr " +
	"aclSetDynamicOutputTensorAddr aclSetRawTensorAddr aclGetRawTensorAddr aclnnInit aclnnFinalize "

// Optional reports whether gotrain can do without a function of the runtime or of the operator base.
func Optional(function string) bool { return strings.Contains(optional, " "+function+" ") }
