// SPDX-License-Identifier: Apache-2.0
// A layer of OpenCL (OPENCL_LAYERS) whose devices say that they are GPUs: Heddle then launches work-groups of many
// work-items, copies between memories, and keeps kernels, as on a GPU. Drivers for processors compute with it.
#include <CL/cl_layer.h>
#include <string.h>

static const struct _cl_icd_dispatch* target;
static struct _cl_icd_dispatch layer;

static cl_int CL_API_CALL GetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void* value,
                                        size_t* size_of_value) {
  const cl_int code = target->clGetDeviceInfo(device, name, size, value, size_of_value);
  if (name == CL_DEVICE_TYPE && code == CL_SUCCESS && value != NULL) {
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    memcpy(value, &type, sizeof(type));
  }
  return code;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void* value,
                                               size_t* size_of_value) {
  static const char layer_name[] = "GPUs of tests";
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const void* const from = name == CL_LAYER_NAME ? (const void*)layer_name : &version;
  const size_t bytes = name == CL_LAYER_NAME ? sizeof(layer_name) : sizeof(version);
  if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value != NULL && size < bytes) return CL_INVALID_VALUE;
  if (value != NULL) memcpy(value, from, bytes);
  if (size_of_value != NULL) *size_of_value = bytes;
  return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch* next,
                                            cl_uint* entries_of_layer,
                                            const struct _cl_icd_dispatch** dispatch) {
  const cl_uint all = sizeof(layer) / sizeof(void*);
  if (entries < all) return CL_INVALID_VALUE;  // A loader of an older version.
  target = next;
  layer = *next;
  layer.clGetDeviceInfo = GetDeviceInfo;
  *entries_of_layer = all;
  *dispatch = &layer;
  return CL_SUCCESS;
}
