/* Where the program is: the frame that calls.

   In: nothing.  Out: its code, and the offset of the instruction.  Promise: what is not public in Python's headers is named here alone, for the versions whose
   layout is known; all others are asked through the public functions, which make an object of every frame. */

#ifndef LAZYNP_FRAMES_H
#define LAZYNP_FRAMES_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE
#else
#include "internal/pycore_frame.h"
#endif

/* The code of the frame that runs (borrowed: it lasts as long as the frame); NULL where there is none, or none that has begun. */
static inline PyCodeObject* frame_code(int* offset) {
    const _PyInterpreterFrame* frame = PyThreadState_Get()->cframe->current_frame;
    if (frame == NULL || _PyFrame_IsIncomplete((_PyInterpreterFrame*)frame)) return NULL;
    *offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    return frame->f_code;
}
#else
static inline PyCodeObject* frame_code(int* offset) {
    PyFrameObject* frame = PyEval_GetFrame();
    PyCodeObject* code;
    if (frame == NULL) return NULL;
    code = PyFrame_GetCode(frame);
    *offset = PyFrame_GetLasti(frame);
    Py_DECREF(code); /* the frame has it */
    return code;
}
#endif

#endif
